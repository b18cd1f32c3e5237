package cli_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/crane"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
)

// The image of a function in Go templates is that of function-go-templating, without its package, with the templates in
// /src and the variable that names them. Its base has a digest in an annotation, and equal builds are equal.
func TestFunctionsInGoTemplatesAreBuiltOnTheirImage(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	registry, dir := cluster.Registry(t), t.TempDir()
	for name, text := range map[string]string{
		"base/crossplane.yaml": "apiVersion: meta.pkg.crossplane.io/v1\nkind: Function\nmetadata: {name: base}\n",
		"fleets/upbound.yaml": "apiVersion: meta.dev.upbound.io/v2alpha1\nkind: Project\nmetadata: {name: fleets}\nspec:\n  repository: " +
			registry + "/acme/fleets\n  architectures: [amd64]\n",
		"fleets/apis/empty.yaml":                        "",
		"fleets/functions/compose/01-boat.yaml.gotmpl":  "kind: Boat{{ if $long }}\n{{ end }}",
		"fleets/functions/compose/00-start.yaml.gotmpl": "{{ $long := true }}\n",
		"fleets/functions/compose/sub/a.tmpl":           "kind: Raft\n",
		"fleets/functions/compose/.hidden":              "{{",
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	runtime := filepath.Join(dir, "runtime.tar")
	writeRuntime(t, runtime, "a program")
	file, image := filepath.Join(dir, "base.xpkg"), registry+"/acme/function-go-templating:v1.0.0"
	runXpkg(t, "build", "-f", filepath.Join(dir, "base"), "--embed-runtime-image-tarball", runtime, "-o", file)
	pushed := runXpkg(t, "push", "-f", file, image)
	_, digest, _ := strings.Cut(strings.TrimSpace(pushed), "@")

	project := filepath.Join(dir, "fleets")
	if got := runXpkg(t, "lint", project); strings.Contains(got, "error") {
		t.Fatal(got)
	}
	var built []string
	for _, name := range []string{"one", "two"} {
		out := runXpkg(t, "build", project, "--go-templating-image", image, "-o", filepath.Join(dir, name+".xpkg"))
		built = append(built, strings.ReplaceAll(out, "/"+name, "/x"))
	}
	if built[0] != built[1] {
		t.Errorf("the builds differ: %s", built)
	}
	runXpkg(t, "push", "-f", filepath.Join(dir, "one.xpkg"), "-f", filepath.Join(dir, "one_compose.xpkg"), registry+"/acme/fleets:v1.0.0")
	ref := registry + "/acme/fleets_compose:v1.0.0"

	raw, err := crane.Config(ref, crane.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	var config v1.ConfigFile
	if err := json.Unmarshal(raw, &config); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(config.Config.Env, "FUNCTION_GO_TEMPLATING_DEFAULT_SOURCE=/src") || len(config.Config.Entrypoint) == 0 {
		t.Errorf("the process is %+v", config.Config)
	}
	img, err := crane.Pull(ref, crane.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := img.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if got := manifest.Annotations["org.opencontainers.image.base.digest"]; got != digest || digest == "" {
		t.Errorf("the annotation has the base %q, want %q", got, digest)
	}
	packages := 0
	for _, l := range manifest.Layers {
		if l.Annotations["io.crossplane.xpkg"] == "base" {
			packages++
		}
	}
	if packages != 1 {
		t.Errorf("%d layers are those of packages", packages)
	}
	var all bytes.Buffer
	if err := crane.Export(img, &all); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for r := tar.NewReader(&all); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		got[h.Name] = string(text)
	}
	for name, want := range map[string]string{
		"src/00-start.yaml.gotmpl": "{{ $long := true }}\n", "src/sub/a.tmpl": "kind: Raft\n",
	} {
		if got[name] != want {
			t.Errorf("%s contains %q, want %q", name, got[name], want)
		}
	}
	if _, ok := got["src/.hidden"]; ok || !strings.Contains(got["package.yaml"], "name: fleets-compose") {
		t.Errorf("the image has the files %v", got)
	}

	// A mistake has its file and line, although the function reads all templates as one text.
	path := filepath.Join(project, "functions/compose/01-boat.yaml.gotmpl")
	if err := os.WriteFile(path, []byte("kind: Boat\n{{ if $lang }}\n{{ end }}"), 0o600); err != nil {
		t.Fatal(err)
	}
	found := reported(t, "lint", project)
	i := slices.IndexFunc(found, func(f reportedFinding) bool { return f.Code == "InvalidTemplate" })
	if i < 0 || found[i].File != path || found[i].Line != 2 || !strings.Contains(found[i].Message, "$lang") {
		t.Errorf("lint found %v", found)
	}
	// A file that is no template would be read as one.
	if err := os.WriteFile(filepath.Join(project, "functions/compose/readme.md"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if found := reported(t, "lint", project); !slices.ContainsFunc(found, func(f reportedFinding) bool {
		return f.Code == "FunctionNotBuildable"
	}) {
		t.Errorf("lint found %v", found)
	}
}
