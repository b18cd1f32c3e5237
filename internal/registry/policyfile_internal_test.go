package registry

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/registry/access"
)

// A program that replaces the content of a file truncates it and then writes it, in any number of parts. A part of a
// policy can be a valid one without its last rules.
func TestAPolicyThatIsBeingWrittenIsNotUsed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.yaml")
	now := time.Unix(1e9, 0)
	write := func(document string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(document), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now, now); err != nil {
			t.Fatal(err)
		}
	}
	p := &policyFileReader{path: path, log: slog.New(slog.DiscardHandler), now: func() time.Time { return now }}
	isPrivate := func(repository string) bool { return !p.current().May(access.Anonymous(), repository, access.Read) }
	const first, last = "rules:\n- prefix: acme/first\n  private: true\n", "- prefix: acme/last\n  private: true\n"
	write(first + last)
	for _, part := range []string{"", " \n# a comment\n", "rules:\n", first} {
		if !isPrivate("acme/first") || !isPrivate("acme/last") {
			t.Fatal("the policy is not used")
		}
		now = now.Add(policyAge)
		write(part)
		if !isPrivate("acme/first") || !isPrivate("acme/last") {
			t.Errorf("%q replaces the policy while the file is written", part)
		}
		write(first + last)
		now = now.Add(policyAge)
	}
	for _, empty := range []string{"", " \n# a comment\n"} {
		write(empty)
		now = now.Add(time.Hour)
		if !isPrivate("acme/first") {
			t.Errorf("%q replaces the policy", empty)
		}
		if _, err := (&policyFileReader{path: path, now: time.Now}).read(); err == nil {
			t.Errorf("a server starts with the policy %q", empty)
		}
	}
	write(first)
	now = now.Add(policyAge)
	if !isPrivate("acme/first") || isPrivate("acme/last") {
		t.Error("a complete policy is not used")
	}
	// The clock of the file system is ahead.
	write(first + last)
	now = now.Add(-time.Hour)
	p.checked = time.Time{}
	_ = p.current()
	p.checked = time.Time{}
	if !isPrivate("acme/last") {
		t.Error("a policy with a time in the future is not used")
	}
}
