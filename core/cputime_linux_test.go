package core_test

import (
	"syscall"
	"time"
	"unsafe"
)

// cpuTime returns the time that the calling thread has run on a processor. The
// caller has locked its goroutine to the thread.
func cpuTime() time.Duration {
	const clockThreadCPU = 3 // CLOCK_THREAD_CPUTIME_ID
	var t syscall.Timespec
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockThreadCPU, uintptr(unsafe.Pointer(&t)), 0); errno != 0 {
		panic(errno)
	}
	return time.Duration(t.Nano())
}
