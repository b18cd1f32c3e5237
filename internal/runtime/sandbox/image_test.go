package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	pkgruntime "github.com/xpkg-dev/xpkg/internal/runtime"

	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/pkg/oci/unpack"
)

// Container fields replace the fields of the image. Additional arguments follow either.
func TestArguments(t *testing.T) {
	root := Root{Path: t.TempDir()}
	if err := os.WriteFile(filepath.Join(root.Path, "run"), nil, 0o755); err != nil { // The file is executable.
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		image unpack.RuntimeConfig
		spec  Spec
		want  []string
	}{
		"Image": {unpack.RuntimeConfig{Entrypoint: []string{"/run"}, Cmd: []string{"serve"}}, Spec{}, []string{
			"/run", "serve",
		}},
		"ImageAndMore": {
			unpack.RuntimeConfig{Entrypoint: []string{"/run"}, Cmd: []string{"serve"}}, Spec{MoreArgs: []string{"--more"}},
			[]string{"/run", "serve", "--more"},
		},
		"CommandOfTheImage": {unpack.RuntimeConfig{Cmd: []string{"/run"}}, Spec{MoreArgs: []string{"--more"}}, []string{
			"/run", "--more",
		}},
		"Arguments": {
			unpack.RuntimeConfig{Entrypoint: []string{"/run"}, Cmd: []string{"serve"}},
			Spec{Args: []string{"debug"}, MoreArgs: []string{"--more"}}, []string{"/run", "debug", "--more"},
		},
		"Command": {
			unpack.RuntimeConfig{Entrypoint: []string{"/other"}, Cmd: []string{"serve"}},
			Spec{Command: []string{"/run"}, MoreArgs: []string{"--more"}}, []string{"/run", "--more"},
		},
	} {
		root.Config = tc.image
		c, err := newCommand(root, tc.spec)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(tc.want, c.args); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	root.Config = unpack.RuntimeConfig{}
	if _, err := newCommand(root, Spec{MoreArgs: []string{"--more"}}); !errors.Is(err, pkgruntime.ErrNoProgram) {
		t.Errorf("nothing but what is added: %v, want NoProgram", err)
	}
}
