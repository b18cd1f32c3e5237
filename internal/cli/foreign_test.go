package cli_test

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/xpkg-dev/xpkg/internal/cli"
	"github.com/xpkg-dev/xpkg/internal/testing/corpus"
	"github.com/xpkg-dev/xpkg/internal/testing/dockerregistry"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// runXpkg runs a command in this process and returns its standard output.
func runXpkg(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	env := &cli.Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs}
	if code := cli.Main(t.Context(), append([]string{"xpkg"}, args...), env); code != 0 {
		t.Fatalf("xpkg %s: exit code %d\n%s", strings.Join(args, " "), code, errs.String())
	}
	return out.String()
}

// A package that is pushed to another registry and pulled again has every document byte for
// byte, and go-containerregistry alone can read it.
func TestForeignRegistry(t *testing.T) {
	registry := dockerregistry.Start(t)
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	for _, folder := range foreignFolders(t) {
		t.Run(folder.name, func(t *testing.T) {
			dir := t.TempDir()
			file, pulled := filepath.Join(dir, "a.xpkg"), filepath.Join(dir, "b.xpkg")
			ref := registry + "/corpus/" + folder.name + ":v1"
			built := runXpkg(t, "build", "-f", folder.path, "-o", file)
			pushed := runXpkg(t, "push", "-f", file, ref)
			if digest := strings.TrimSpace(built[strings.LastIndex(built, "sha256:"):]); !strings.Contains(pushed, digest) {
				t.Errorf("built %sand pushed %s", built, pushed)
			}
			runXpkg(t, "pull", ref, "-o", pulled)
			if a, b := read(t, file), read(t, pulled); !bytes.Equal(a, b) {
				t.Errorf("%d bytes were built and other %d bytes pulled", len(a), len(b))
			}
			stream := runXpkg(t, "extract", ref)
			sameDocuments(t, folder.path, stream)
			if got := withForeignClient(t, ref); got != stream {
				t.Errorf("go-containerregistry reads %d bytes, xpkg %d", len(got), len(stream))
			}
			if report := runXpkg(t, "inspect", ref, "-o", "json"); !strings.Contains(report, `"indexLayer": "proven"`) {
				t.Errorf("the index layer is not true: %s", report)
			}
		})
	}
}

type packageFolder struct{ name, path string }

// foreignFolders returns the examples of this repository and, where the corpus is, real
// packages of each kind.
func foreignFolders(t *testing.T) []packageFolder {
	t.Helper()
	examples := filepath.Join("..", "..", "examples")
	folders := []packageFolder{
		{"example-provider", filepath.Join(examples, "provider-hello", "package")},
		{"example-function", filepath.Join(examples, "function-greet", "package")},
		{"example-configuration", filepath.Join(examples, "configuration-hello")},
	}
	if testing.Short() {
		return folders
	}
	t.Run("Corpus", func(t *testing.T) {
		dir := corpus.Dir(t)
		for name, path := range map[string]string{
			"provider-nop":          "providers/crossplane-contrib__provider-nop@v0.4.0/package",
			"provider-argocd":       "providers/*__provider-argocd@*/package",
			"provider-grafana":      "providers/*provider-grafana@v0.40.1/package",
			"provider-in-cluster":   "providers/*__provider-in-cluster@*/package",
			"configuration-network": "configurations/upbound__configuration-aws-network@v0.23.0",
			"function":              "functions/crossplane-contrib__function-auto-ready@*/package",
		} {
			found, err := filepath.Glob(filepath.Join(dir, path))
			if err != nil || len(found) == 0 {
				t.Logf("skipped %s: nothing at %s", name, path)
				continue
			}
			folders = append(folders, packageFolder{name, found[len(found)-1]})
		}
	})
	return folders
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// sameDocuments proves that a stream has every document of a folder as its author
// wrote it, and no other.
func sameDocuments(t *testing.T, dir, stream string) {
	t.Helper()
	folder, err := xpkg.ReadFolder(os.DirFS(dir), xpkg.FolderOptions{ExamplesRoot: "examples"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := xpkg.Split([]byte(stream), "package.yaml", xpkg.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(folder.Documents) {
		t.Fatalf("%d documents went in and %d came out", len(folder.Documents), len(got))
	}
	for i, want := range folder.Documents {
		if !bytes.Equal(got[i].Raw, want.Raw) {
			t.Errorf("document %d of %s changed on the way", want.Index+1, want.File)
		}
		onDisk := bytes.TrimPrefix(read(t, filepath.Join(dir, want.File)), []byte("\xef\xbb\xbf"))
		if !bytes.Contains(append(onDisk, '\n'), want.Raw) {
			t.Errorf("document %d is not in %s as it is there", want.Index+1, want.File)
		}
	}
}

// withForeignClient reads package.yaml from the flattened filesystem, with nothing
// of ours.
func withForeignClient(t *testing.T, ref string) string {
	t.Helper()
	parsed, err := name.ParseReference(ref)
	if err != nil {
		t.Fatal(err)
	}
	img, err := remote.Image(parsed, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: "amd64"}))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(img); err != nil {
		t.Fatal(err)
	}
	flat := mutate.Extract(img)
	defer flat.Close()
	for entries := tar.NewReader(flat); ; {
		entry, err := entries.Next()
		if err != nil {
			t.Fatalf("go-containerregistry finds no package.yaml: %v", err)
		}
		if entry.Name == "package.yaml" {
			raw, err := io.ReadAll(entries)
			if err != nil {
				t.Fatal(err)
			}
			return string(raw)
		}
	}
}
