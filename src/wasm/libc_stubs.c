/* libc_stubs.c - the calls that the C library would make to a system, so that the module imports
 * nothing but "gpu" and "host".
 *
 * snprintf links stderr into the module, and stderr the three calls below. The core never prints,
 * so they are never reached; if one were, it would return "no such file".
 */
#include <wasi/api.h>

__wasi_errno_t __wasi_fd_close(__wasi_fd_t fd)
{
    (void)fd;
    return __WASI_ERRNO_BADF;
}

__wasi_errno_t __wasi_fd_seek(__wasi_fd_t fd, __wasi_filedelta_t offset, __wasi_whence_t whence,
                              __wasi_filesize_t *out)
{
    (void)fd, (void)offset, (void)whence, (void)out;
    return __WASI_ERRNO_BADF;
}

__wasi_errno_t __wasi_fd_write(__wasi_fd_t fd, const __wasi_ciovec_t *vecs, size_t n,
                               __wasi_size_t *out)
{
    (void)fd, (void)vecs, (void)n, (void)out;
    return __WASI_ERRNO_BADF;
}
