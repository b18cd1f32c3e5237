package sandbox

import (
	"testing"

	"golang.org/x/sys/unix"
)

// A private umask of the supervisor does not keep the runtime from its own files.
func TestUmaskOfTheSupervisorDoesNotReachTheRuntime(t *testing.T) {
	for name, isolation := range map[string]Isolation{"namespaces": Namespaces, "chroot": Chroot} {
		t.Run(name, func(t *testing.T) {
			images := image(t)
			program := spec(t, "umask")
			program.Files = map[string][]byte{"/tls/server/tls.crt": []byte("certificate")}
			defer unix.Umask(unix.Umask(0o077))
			s := newSupervisor(t, func(o *Options) { o.Images, o.Isolation = images, isolation })
			begin(t, s, program)
			if got := mustAsk(t, program, "read", "/tls/server/tls.crt"); got != "certificate" {
				t.Errorf("the runtime reads %q", got)
			}
		})
	}
}
