package image_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/oci/image"
)

func TestProcessReplacesTheProgramOfTheImage(t *testing.T) {
	base, err := image.Build(t.Context(), image.Input{
		Registry: []image.File{{Path: "app.yaml", Data: []byte("title: A\n")}},
		Process: &image.Process{
			Command: []string{"/old"}, Args: []string{"a"}, Env: []string{"A=1", "B=1"}, WorkingDir: "/old",
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		process              image.Process
		entrypoint, cmd, env []string
		dir                  string
	}{
		"nothing": {image.Process{}, []string{"/old"}, []string{"a"}, []string{"A=1", "B=1"}, "/old"},
		"command": {image.Process{Command: []string{"/new"}}, []string{"/new"}, nil, []string{"A=1", "B=1"}, "/old"},
		"args":    {image.Process{Args: []string{"b"}}, []string{"/old"}, []string{"b"}, []string{"A=1", "B=1"}, "/old"},
		"env":     {image.Process{Env: []string{"A=2"}}, []string{"/old"}, []string{"a"}, []string{"B=1", "A=2"}, "/old"},
		"dir":     {image.Process{WorkingDir: "/new"}, []string{"/old"}, []string{"a"}, []string{"A=1", "B=1"}, "/new"},
	} {
		built, err := image.Build(t.Context(), image.Input{PackageYAML: []byte("a: b\n"), Base: base, Process: &c.process})
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Config struct {
				Entrypoint, Cmd, Env []string
				WorkingDir           string
			} `json:"config"`
		}
		if err := json.Unmarshal(built.RawConfig(), &got); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.Config.Entrypoint, c.entrypoint) || !slices.Equal(got.Config.Cmd, c.cmd) ||
			!slices.Equal(got.Config.Env, c.env) || got.Config.WorkingDir != c.dir {
			t.Errorf("%s: %+v", name, got.Config)
		}
	}
}
