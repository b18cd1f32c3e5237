// Command hostile is the runtime of the hostile packages of the test: each mode attacks the
// control plane in one way, and prints the result.
package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func main() {
	mode, rest := os.Args[1], os.Args[2:]
	modes := map[string]func([]string){
		"serve": func([]string) {}, "fork": fork, "memory": memory, "disk": disk, "flood": flood, "stubborn": stubborn,
		"listen": listen, "crash": crash, "read": read, "descriptors": descriptors, "signal": killOthers,
		"takeover": takeover, "poll": poll,
	}
	modes[mode](rest)
	for {
		time.Sleep(time.Hour)
	}
}

// fork starts copies of itself without end.
func fork([]string) {
	for {
		cmd := exec.Command("/proc/self/exe", "fork")
		if err := cmd.Start(); err != nil {
			fmt.Println("fork:", err)
			time.Sleep(time.Millisecond)
		}
	}
}

// memory uses as much memory as it gets.
func memory([]string) {
	var all [][]byte
	for {
		block := bytes.Repeat([]byte{1}, 64<<20)
		all = append(all, block)
		time.Sleep(10 * time.Millisecond)
		fmt.Println("memory:", len(all)*64, "MiB")
	}
}

// disk writes 256 MiB into its own file system.
func disk([]string) {
	f, err := os.Create("/fill")
	if err == nil {
		block := bytes.Repeat([]byte{1}, 1<<20)
		for range 256 {
			if _, err = f.Write(block); err != nil {
				break
			}
		}
		f.Close()
	}
	fmt.Println("disk:", err)
}

// flood writes 64 MiB to its log.
func flood([]string) {
	line := strings.Repeat("\x1b[2J", 250) + "\n"
	for range 64 << 10 {
		fmt.Print(line)
	}
}

// stubborn ignores every signal that can be ignored.
func stubborn([]string) {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	fmt.Println("stubborn")
}

// listen takes ports of the control plane.
func listen(addresses []string) {
	for _, address := range addresses {
		l, err := net.Listen("tcp", address)
		fmt.Println("listen:", address, err)
		if err == nil {
			defer l.Close()
		}
	}
	for {
		time.Sleep(time.Hour)
	}
}

func crash([]string) { os.Exit(3) }

// read reads files of the control plane.
func read(paths []string) {
	for _, path := range paths {
		err := filepath.WalkDir(path, func(name string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return nil
			}
			if content, err := os.ReadFile(name); err == nil && len(content) > 0 {
				fmt.Println("READ", name)
			}
			return nil
		})
		fmt.Println("read:", path, err)
	}
}

// descriptors prints the open descriptors of this process.
func descriptors([]string) {
	for fd := 3; fd < 256; fd++ {
		var stat syscall.Stat_t
		if syscall.Fstat(fd, &stat) != nil {
			continue
		}
		if target, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)); err == nil &&
			!strings.HasPrefix(target, "anon_inode:") {
			fmt.Println("DESCRIPTOR", fd, target)
		}
	}
	fmt.Println("descriptors: end")
}

// killOthers signals every other process.
func killOthers([]string) {
	self := os.Getpid()
	for pid := 1; pid < 1<<16; pid++ {
		// A thread of this process counts as this process.
		if _, err := os.Stat(fmt.Sprintf("/proc/self/task/%d", pid)); err == nil || pid == self {
			continue
		}
		if syscall.Kill(pid, syscall.SIGKILL) == nil {
			fmt.Println("KILLED", pid)
		}
	}
	fmt.Println("signal: end")
}
