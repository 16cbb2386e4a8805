/* `resp PORT`: answers PING of one connection at a time; FAULT after LEFT of them. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef FAULT
#define FAULT ""
#endif
#ifndef LEFT
#define LEFT 0
#endif

static const char request[] = "*1\r\n$4\r\nPING\r\n";

int main(int argc, char **argv)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[argc - 1]))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (void *)&address, sizeof address) || listen(listener, 8))
        return 1;
    long left = LEFT;
    for (;;) {
        int client = accept(listener, 0, 0);
        char buffer[sizeof request - 1];
        volatile unsigned long sum = 0;
        while (recv(client, buffer, sizeof buffer, MSG_WAITALL) == (ssize_t)sizeof buffer) {
            const char *reply = "+PONG\r\n";
            for (unsigned long i = 0; i < WORK; i++)
                sum += i;
            if (*FAULT && left-- <= 0) {
                if (!strcmp(FAULT, "die")) {
                    fputs("resp: out of luck\n", stderr);
                    abort();
                }
                reply = "-ERR refused\r\n";
            }
            if (write(client, reply, strlen(reply)) < 0)
                break;
        }
        close(client);
    }
}
