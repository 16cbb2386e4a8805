/* Sends bytes to a server, one by one. `load PORT REQUESTS [fail | hang | fork]`, or
   `load PORT MILLISECONDS timed`: as many as it can in that time. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static double now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e3 + time.tv_nsec / 1e6;
}

int main(int argc, char **argv)
{
    const char *fault = argc > 3 ? argv[3] : "";
    long requests = atol(argv[2]);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1]))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (!strcmp(fault, "fail")) {
        fputs("load: no such thing\n", stderr);
        return 5;
    }
    if (!strcmp(fault, "fork") && fork() == 0) {
        setsid();
        for (;;)
            ;
    }
    int server = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(server, (void *)&address, sizeof address)) {
        perror("load");
        return 1;
    }
    double end = now_ms() + requests;
    if (!strcmp(fault, "timed"))
        requests = 1000000000;
    for (long i = 0; i < requests; i++) {
        if (!strcmp(fault, "timed") && now_ms() >= end)
            requests = i + 1;
        char byte = 'x';
        if (write(server, &byte, 1) != 1 || read(server, &byte, 1) != 1) {
            fputs("load: server went away\n", stderr);
            return 1;
        }
    }
    if (!strcmp(fault, "hang"))
        for (;;)
            ;
    printf("%ld requests\n", requests);
    return 0;
}
