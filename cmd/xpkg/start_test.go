//go:build unix

package main

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// messagesOfStart returns the messages of the Go runtime during the start of a short command.
func messagesOfStart(t *testing.T, debug string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "version")
	cmd.Env = append(os.Environ(), mainVariable+"=1", "GODEBUG="+debug, "GOGC=")
	var messages strings.Builder
	cmd.Stderr = &messages
	if err := cmd.Run(); err != nil {
		t.Fatal(err, messages.String())
	}
	return messages.String()
}

// TestPackagesOfXpkgInitializeNothing checks that no package of xpkg computes in its initialization a value that only
// some commands need, such as a regular expression. The declarations of the largest package take 41 KiB.
func TestPackagesOfXpkgInitializeNothing(t *testing.T) {
	const most = 64 << 10
	line := regexp.MustCompile(`(?m)^init (\S+) .* (\d+) bytes, (\d+) allocs$`)
	packages, allocations := 0, 0
	for _, found := range line.FindAllStringSubmatch(messagesOfStart(t, "inittrace=1"), -1) {
		size, err := strconv.Atoi(found[2])
		if err != nil {
			t.Fatal(err)
		}
		count, err := strconv.Atoi(found[3])
		if err != nil {
			t.Fatal(err)
		}
		allocations += count
		if strings.HasPrefix(found[1], "github.com/xpkg-dev/xpkg/") {
			packages++
			if size > most {
				t.Errorf("the initialization of %s allocates %d bytes, want at most %d", found[1], size, most)
			}
		}
	}
	// Each allocation takes about half a microsecond; another dependency with many of them delays every command. The
	// Markdown and HTML libraries of web pages make 10,000 of them, and those that verify signatures 6,000.
	if most := 60_000; allocations > most || packages == 0 {
		t.Errorf(
			"the initialization of all packages makes %d allocations, want at most %d; %d packages are of xpkg", allocations,
			most, packages,
		)
	}
}

// TestShortCommandsCollectNoGarbage checks that a short command ends before the first garbage collection.
func TestShortCommandsCollectNoGarbage(t *testing.T) {
	if messages := messagesOfStart(t, "gctrace=1"); strings.Contains(messages, "gc ") {
		t.Errorf("garbage is collected:\n%s", messages)
	}
}
