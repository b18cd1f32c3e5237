package program_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// answer runs a command in a terminal, waits for its question, and answers. It returns the exit
// code and the content of the screen.
func (p plane) answer(t *testing.T, keys string, args ...string) (code int, lines []string) {
	t.Helper()
	term := startTerminal(t, 120, p, args...)
	until(t, "the command asks", func(context.Context) (string, bool) {
		said := term.output.String()
		return said, strings.Contains(said, "Apply these changes? [y/N] ")
	})
	if _, err := term.master.WriteString(keys); err != nil {
		t.Fatal(err)
	}
	return term.wait(t)
}

func (p plane) installed(t *testing.T, name string) bool {
	t.Helper()
	err := newClient(t, p.Kubeconfig).Get(t.Context(), client.ObjectKey{Name: name}, &v1.Provider{})
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return err == nil
}

// On a terminal, changes are shown and need confirmation. Long lists are shortened.
func TestConsentOnTerminal(t *testing.T) {
	p := shared(t)
	const name, interrupt, end = "consent", "\x03", "\x04"
	ref := p.publish(t, providerFolder(t, name, "consent.test", 12), "consent/provider")
	for keys, want := range map[string]int{"\n": 130, "n\n": 130, "yesterday\n": 130, end: 130, interrupt: 130} {
		t.Run(fmt.Sprintf("%q", keys), func(t *testing.T) {
			code, lines := p.answer(t, keys, "install", "provider", ref, name)
			if code != want || p.installed(t, name) {
				t.Errorf(
					"exit code %d, installed %v, and on the screen:\n%s", code, p.installed(t, name), strings.Join(lines, "\n"),
				)
			}
		})
	}
	code, lines, _ := p.onTerminal(t, 120, "plan", "install", "provider", ref, name)
	if code != 2 || !slices.Contains(lines, "  create  and 2 more (xpkg plan -o json shows all)") {
		t.Errorf("the plan on a terminal: exit code %d, and on the screen:\n%s", code, strings.Join(lines, "\n"))
	}
	code, lines = p.answer(t, "y\n", "install", "provider", ref, name, "--wait", "2m")
	for _, line := range []string{
		"install provider/consent", "  create  CustomResourceDefinition thing09s.consent.test",
		"  create  and 2 more (xpkg plan -o json shows all)", "12 to create; 0 objects unchanged.",
		"provider/consent healthy (" + ref + ")",
	} {
		if !slices.Contains(lines, line) {
			t.Errorf("the screen lacks %q", line)
		}
	}
	if code != 0 || t.Failed() {
		t.Errorf("exit code %d, and on the screen:\n%s", code, strings.Join(lines, "\n"))
	}
	// An unchanged package needs no confirmation.
	code, lines, _ = p.onTerminal(t, 120, "install", "provider", ref, name)
	wantScreen(t, code, 0, lines, "provider/consent unchanged ("+ref+")")
	if code, _ := p.answer(t, "n\n", "update", name, "--manual-activation"); code != 130 {
		t.Errorf("an update that is declined: exit code %d", code)
	}
	if code, _ := p.answer(t, "n\n", "uninstall", "provider", name); code != 130 || !p.installed(t, name) {
		t.Errorf("an uninstall that is declined: exit code %d", code)
	}
	code, lines = p.answer(t, "Y\n", "uninstall", "provider", name, "--wait", "1m")
	if code != 0 || p.installed(t, name) || !slices.Contains(lines, "provider/consent gone") {
		t.Errorf("exit code %d, and on the screen:\n%s", code, strings.Join(lines, "\n"))
	}
}

// showsInput reports whether the terminal shows what is typed.
func (term *terminal) showsInput(t *testing.T) (shows bool) {
	t.Helper()
	raw, err := term.master.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var state *unix.Termios
	failed := raw.Control(func(fd uintptr) { state, err = unix.IoctlGetTermios(int(fd), unix.TCGETS) })
	if err := errors.Join(failed, err); err != nil {
		t.Fatal(err)
	}
	return state.Lflag&unix.ECHO != 0
}

// Ctrl-C ends the prompts for a name and a password, and the terminal shows its input again.
func TestCtrlCEndsThePromptsOfLogin(t *testing.T) {
	w := newWorkshop(t)
	for prompt, args := range map[string][]string{
		"Username: ": {"login", "registry.example.org"},
		"Password: ": {"login", "registry.example.org", "--username", "ann"},
	} {
		t.Run(prompt, func(t *testing.T) {
			term := startTerminal(t, 120, plane{workshop: w}, args...)
			until(t, "the command asks", func(context.Context) (string, bool) {
				said := term.output.String()
				return said, strings.Contains(said, prompt) && term.showsInput(t) == (prompt == "Username: ")
			})
			if _, err := term.master.WriteString("\x03"); err != nil {
				t.Fatal(err)
			}
			code, lines := term.wait(t)
			if code != 130 || !strings.Contains(strings.Join(lines, "\n"), "error: Interrupted: ") || !term.showsInput(t) {
				t.Errorf("exit code %d\n%s", code, strings.Join(lines, "\n"))
			}
		})
	}
}
