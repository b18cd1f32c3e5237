package pty

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
)

// Open opens both ends of a new pseudo terminal of a number of columns: see pty(7).
func Open(columns uint16) (master, slave *os.File, err error) {
	// Close must end a pending read, which it does for a non-blocking file only.
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	master = os.NewFile(uintptr(fd), "/dev/ptmx")
	number, err := unix.IoctlGetUint32(fd, unix.TIOCGPTN)
	err = errors.Join(err,
		unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0),
		unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: columns}))
	if err == nil {
		slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		return nil, nil, errors.Join(err, master.Close())
	}
	return master, slave, nil
}

// Output returns what a function writes to a pseudo terminal of a number of columns.
func Output(columns int, write func(slave *os.File)) (string, error) {
	master, slave, err := Open(uint16(columns))
	if err != nil {
		return "", err
	}
	const end = "\x00" // The kernel can drop what is not read yet when the other end is closed.
	var text string
	done := make(chan error)
	go func() {
		var err error
		text, err = bufio.NewReader(master).ReadString(end[0])
		done <- err
	}()
	write(slave)
	_, err = slave.WriteString(end)
	err = errors.Join(err, <-done, slave.Close(), master.Close())
	return strings.TrimSuffix(text, end), err
}

var (
	sequences = regexp.MustCompile("\x1b\\[[0-9;]*m")
	quoted    = regexp.MustCompile("`[^`]*`")
	commands  = regexp.MustCompile(`^ {2,}(xpkg|kubectl|docker|helm|export) [^A-Z]`)
)

// WideLines returns the lines of an output that do not fit in a number of columns, except those of a single word or of
// a command, which users copy.
func WideLines(output string, columns int) []string {
	var out []string
	for _, line := range strings.FieldsFunc(
		sequences.ReplaceAllString(output, ""), func(r rune) bool { return r == '\n' || r == '\r' },
	) {
		line = strings.TrimPrefix(line, "\x1b[K")
		text := strings.Trim(quoted.ReplaceAllString(line, ""), " │├└─")
		if terminal.Cells(line) > columns && strings.Contains(text, " ") && !commands.MatchString(line) {
			out = append(out, line)
		}
	}
	return out
}
