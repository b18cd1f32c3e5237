package goprogram

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
)

// program writes the module of a Go program named boats, and returns its folder.
func program(t *testing.T, source string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "boats")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"go.mod": "module example.org/boats\n\ngo 1.26.0\n", "main.go": source} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

const empty = "package main\n\nfunc main() {}\n"

func buildImage(t *testing.T, folder, arch string) *image.Image {
	t.Helper()
	var messages strings.Builder
	i, err := Program{
		Folder: folder, Platform: oci.Platform{OS: "linux", Architecture: arch}, Messages: &messages,
	}.Image(t.Context())
	if err != nil {
		t.Fatal(err, messages.String())
	}
	return i
}

// read returns the headers and the contents of the files of an image.
func read(t *testing.T, i *image.Image) (map[string]*tar.Header, map[string][]byte) {
	t.Helper()
	manifest, err := i.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest.Layers) != 1 {
		t.Fatalf("%d layers", len(manifest.Layers))
	}
	blob, err := i.Open(context.Background(), manifest.Layers[0])
	if err != nil {
		t.Fatal(err)
	}
	defer blob.Close()
	plain, err := gzip.NewReader(blob)
	if err != nil {
		t.Fatal(err)
	}
	headers, contents := map[string]*tar.Header{}, map[string][]byte{}
	for r := tar.NewReader(plain); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return headers, contents
		}
		if err != nil {
			t.Fatal(err)
		}
		headers[h.Name] = h
		if contents[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

func TestImageContainsTheProgramAndCertificates(t *testing.T) {
	i := buildImage(t, program(t, empty), "arm64")
	if got := i.Platform(); got.OS != "linux" || got.Architecture != "arm64" {
		t.Errorf("the platform is %s", got)
	}
	headers, contents := read(t, i)
	want := []string{"boats", "etc/", "etc/ssl/", "etc/ssl/certs/", "etc/ssl/certs/ca-certificates.crt", "tmp/"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(headers))); diff != "" {
		t.Error(diff)
	}
	for name, mode := range map[string]int64{"boats": 0o755, "tmp/": 0o1777, "etc/ssl/certs/ca-certificates.crt": 0o644} {
		if h := headers[name]; h.Mode != mode || h.Uid != 0 || h.ModTime.Unix() != 0 {
			t.Errorf("%s has the mode %o, the owner %d and the time %s", name, h.Mode, h.Uid, h.ModTime)
		}
	}
	if !strings.HasPrefix(string(contents["boats"]), "\x7fELF") {
		t.Error("the program is not an ELF file")
	}
	if !x509.NewCertPool().AppendCertsFromPEM(contents["etc/ssl/certs/ca-certificates.crt"]) {
		t.Error("the file of certificates is not valid")
	}
	manifest, err := i.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	blob, err := i.Open(t.Context(), manifest.Config)
	if err != nil {
		t.Fatal(err)
	}
	defer blob.Close()
	var config struct {
		Config struct {
			User       string
			Entrypoint []string
		} `json:"config"`
	}
	if err := json.NewDecoder(blob).Decode(&config); err != nil {
		t.Fatal(err)
	}
	if config.Config.User != user || !slices.Equal(config.Config.Entrypoint, []string{"/boats"}) {
		t.Errorf("the configuration is %+v", config)
	}
}

func TestImageIsReproducible(t *testing.T) {
	first, second := buildImage(t, program(t, empty), "amd64"), buildImage(t, program(t, empty), "amd64")
	if first.Digest() != second.Digest() {
		t.Errorf("the digests are %s and %s", first.Digest(), second.Digest())
	}
	if other := buildImage(
		t, program(t, "package main\n\nfunc main() { println(1) }\n"), "amd64",
	); other.Digest() == first.Digest() {
		t.Error("another program has the same digest")
	}
}

func TestProgramsThatCannotBeBuilt(t *testing.T) {
	for name, c := range map[string]struct {
		folder, arch, message string
	}{
		"syntax error":     {program(t, "package main\n\nfunc main() {\n"), "amd64", "syntax error"},
		"no main package":  {program(t, "package boats\n"), "amd64", "no main packages"},
		"no folder":        {filepath.Join(t.TempDir(), "absent"), "amd64", ""},
		"unknown platform": {program(t, empty), "pdp11", "unsupported GOOS/GOARCH"},
	} {
		t.Run(name, func(t *testing.T) {
			var messages strings.Builder
			_, err := Program{
				Folder: c.folder, Platform: oci.Platform{OS: "linux", Architecture: c.arch}, Messages: &messages,
			}.Image(t.Context())
			if !errors.Is(err, ErrGoBuild) || !strings.Contains(messages.String(), c.message) {
				t.Errorf("%v\n%s", err, messages.String())
			}
		})
	}
}

func TestMissingToolchainIsNamed(t *testing.T) {
	folder := program(t, empty)
	t.Setenv("PATH", t.TempDir())
	if _, err := (Program{Folder: folder, Platform: oci.Platform{OS: "linux", Architecture: "amd64"}}).
		Image(t.Context()); !errors.Is(err, ErrNoGo) {
		t.Error(err)
	}
}
