package sandbox

import (
	"os"
	"path/filepath"
	"testing"
)

// The folder of the supervisor lies in the data directory of a control plane, beside
// the token of its registry and the kubeconfig of its administrator. A runtime reads
// neither of them unless there is no isolation at all, as docs/guides/processes.md
// warns.
func TestRuntimeCannotReadTheDataDirectory(t *testing.T) {
	forEachIsolation(t, func(t *testing.T, isolated *Supervisor) {
		data := filepath.Join(openTemp(t), "data")
		if err := os.Mkdir(data, 0o700); err != nil {
			t.Fatal(err)
		}
		secrets := []string{filepath.Join(data, "registry.token"), filepath.Join(data, "kubeconfig")}
		for _, secret := range secrets {
			if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s := newSupervisor(
			t, func(o *Options) { o.Dir, o.Isolation = filepath.Join(data, "runtime"), isolated.opts.Isolation },
		)
		spec := spec(t, "curious")
		begin(t, s, spec)
		for _, secret := range secrets {
			for _, name := range []string{secret, "/proc/1/root" + secret, "/../../../.." + secret} {
				got, err := ask(spec, "read", name)
				if s.opts.Isolation != None && err == nil {
					t.Errorf("it reads %s: %q", name, got)
				}
			}
			if got, err := ask(spec, "read", secret); s.opts.Isolation == None && (err != nil || got != "secret") {
				t.Errorf("the guide warns that it reads %s, and it does not: %q, %v", secret, got, err)
			}
		}
	})
}
