package main

import (
	"os"
	"strconv"
	"syscall"
)

const (
	// itself is the interpreter of the script: the program that executes the script.
	itself = "/proc/self/exe"
	script = "/bin/script"
	// keptProgram is the variable with the descriptor that keepProgram opens.
	keptProgram = "KEPT_PROGRAM"
)

// keepProgram opens the executable of this process, which is another program when this
// program is its loader, and executes this program with the descriptor.
func keepProgram() error {
	const pathOnly = 0x200000 // O_PATH
	fd, err := syscall.Open(itself, pathOnly, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: itself, Err: err}
	}
	return syscall.Exec("/bin/program", []string{"program"}, append(os.Environ(), keptProgram+"="+strconv.Itoa(fd)))
}

// opened is the descriptor of the other program. It stays open.
var opened *os.File

// overwrite opens the other program for writing, and writes to it.
func overwrite(descriptor string) error {
	var err error
	if opened, err = os.OpenFile("/proc/self/fd/"+descriptor, os.O_WRONLY, 0); err != nil {
		return err
	}
	_, err = opened.WriteAt([]byte("overwritten"), 0)
	return err
}
