/* Answers each byte with a byte. `server PORT [crash REQUESTS | deaf | hang REQUESTS | polite]` */
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef FAULT
#define FAULT ""
#endif
#ifndef LEFT
#define LEFT -1
#endif

static void leave(int number)
{
    (void)number;
    exit(0); /* writes what an instrumented program counted */
}

int main(int argc, char **argv)
{
    const char *fault = argc > 2 ? argv[2] : FAULT;
    long left = argc > 3 ? atol(argv[3]) : LEFT;
    if (!strcmp(fault, "deaf"))
        for (;;)
            pause();
    if (!strcmp(fault, "polite"))
        signal(SIGTERM, leave);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1]))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (void *)&address, sizeof address) || listen(listener, 8)) {
        perror("server");
        return 1;
    }
    volatile unsigned long kept = 0;
    for (;;) {
        int client = accept(listener, 0, 0);
        char byte;
        while (read(client, &byte, 1) == 1) {
            unsigned long chain = kept;
            for (unsigned long i = 0; i < WORK; i++)
                chain = chain * 6364136223846793005UL + i;
            kept = chain;
            if (left == 0 && !strcmp(fault, "hang"))
                for (;;)
                    pause();
            if (left == 0) {
                fputs("server: out of luck\n", stderr);
                return 7;
            }
            left -= left > 0;
            if (write(client, &byte, 1) != 1)
                break;
        }
        close(client);
    }
}
