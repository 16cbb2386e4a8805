/* Loads its work from lib/libwork.so beside itself. `plugin ROUNDS` */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    char self[PATH_MAX] = "", library[PATH_MAX + 32];
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0)
        return 3;
    snprintf(library, sizeof library, "%s/lib/libwork.so", dirname(self));
    void *handle = dlopen(library, RTLD_NOW);
    if (!handle) {
        fprintf(stderr, "plugin: %s\n", dlerror());
        return 4;
    }
    ((void (*)(long))dlsym(handle, "work"))(argc > 1 ? atol(argv[1]) : 1000000);
    puts("done");
    return 0;
}
