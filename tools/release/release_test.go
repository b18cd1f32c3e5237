package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"
	specs "github.com/opencontainers/image-spec/specs-go/v1"
	"sigs.k8s.io/yaml"
)

const version = "v1.2.3"

// build builds a release for this machine and for Windows from a folder with the sources.
func build(t *testing.T, root string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	o := options{root: root, out: out, version: version, url: "https://example.org/download"}
	if err := o.parse(runtime.GOOS+"/"+runtime.GOARCH, ""); err != nil {
		t.Fatal(err)
	}
	if err := o.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return out
}

// contents returns the files below a folder by name.
func contents(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err == nil {
			out[filepath.ToSlash(name)], err = os.ReadFile(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// unpack returns the files of a compressed tar file.
func unpack(t *testing.T, raw []byte) map[string][]byte {
	t.Helper()
	plain, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	for r := tar.NewReader(plain); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Uid != 0 || header.Gid != 0 || header.Uname != "" {
			t.Errorf("%s belongs to the user %d %q of this machine", header.Name, header.Uid, header.Uname)
		}
		if out[header.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

// A release has the promised files, the program knows its version, and builds in two folders give the same bytes.
func TestRelease(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program: skipped with -short")
	}
	root := filepath.Join("..", "..")
	epoch, err := commitTime(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("SOURCE_DATE_EPOCH", fmt.Sprint(epoch.Unix()))
	files := contents(t, build(t, root))
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	copySources(t, root, elsewhere)
	again := contents(t, build(t, elsewhere))
	for name, content := range files {
		if !bytes.Equal(content, again[name]) {
			t.Errorf("%s differs between two builds", name)
		}
	}
	if len(again) != len(files) {
		t.Errorf("%d and %d files", len(files), len(again))
	}

	base := "xpkg_1.2.3_" + runtime.GOOS + "_" + runtime.GOARCH
	archive := files[base+".tar.gz"]
	members := unpack(t, archive)
	for _, name := range []string{
		"LICENSE", "README.md", "CHANGELOG.md", "completions/xpkg.bash", "completions/xpkg.zsh", "completions/xpkg.fish",
		"completions/xpkg.ps1", "man/man1/xpkg.1", "man/man1/xpkg-install.1",
	} {
		if len(members[name]) == 0 {
			t.Errorf("%s is missing or empty", name)
		}
	}
	program := filepath.Join(t.TempDir(), "xpkg")
	if err := os.WriteFile(program, members["xpkg"], 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), program, "version").Output(); err != nil ||
		!strings.Contains(string(out), version) {
		t.Errorf("xpkg version: %q and %v", out, err)
	}
	checkBill(t, program, files[base+".cdx.json"])
	digest := fmt.Sprintf("%x", sha256.Sum256(archive))
	for name, want := range map[string]string{
		"crossplane.krew.yaml": digest, "xpkg.rb": digest, checksumsName: digest + "  " + base + ".tar.gz\n",
	} {
		if !strings.Contains(string(files[name]), want) {
			t.Errorf("%s does not contain %q:\n%s", name, want, files[name])
		}
	}
	checkChart(t, files)
}

// checkBill checks that a bill of materials lists the modules of a program.
func checkBill(t *testing.T, program string, raw []byte) {
	t.Helper()
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	bill := cyclonedx.BOM{}
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(raw), cyclonedx.BOMFileFormatJSON).Decode(&bill); err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, c := range *bill.Components {
		listed[c.Name+"@"+c.Version] = true
	}
	for _, m := range info.Deps {
		if !listed[m.Path+"@"+m.Version] {
			t.Errorf("%s %s is not listed", m.Path, m.Version)
		}
	}
	if len(listed) != len(info.Deps)+1 {
		t.Errorf("%d components, want %d modules and the standard library", len(listed), len(info.Deps))
	}
}

// checkChart checks that the archive of the chart and the layer of the OCI layout are the same, with the version of the
// release.
func checkChart(t *testing.T, files map[string][]byte) {
	t.Helper()
	chart := unpack(t, files["xpkg-chart-1.2.3.tgz"])
	var metadata struct{ Name, Version, AppVersion string }
	if err := yaml.Unmarshal(chart["xpkg/Chart.yaml"], &metadata); err != nil {
		t.Fatal(err)
	}
	if metadata.Name != "xpkg" || metadata.Version != "1.2.3" || metadata.AppVersion != version ||
		chart["xpkg/values.yaml"] == nil {
		t.Errorf("metadata %+v with the files %d", metadata, len(chart))
	}
	var index specs.Index
	if err := json.Unmarshal(files["chart/index.json"], &index); err != nil || len(index.Manifests) != 1 {
		t.Fatalf("%+v, %v", index, err)
	}
	blob := func(d specs.Descriptor) []byte {
		t.Helper()
		content := files["chart/blobs/sha256/"+d.Digest.Encoded()]
		if int64(len(content)) != d.Size {
			t.Errorf("%s has %d bytes, want %d", d.Digest, len(content), d.Size)
		}
		return content
	}
	var manifest specs.Manifest
	if err := json.Unmarshal(blob(index.Manifests[0]), &manifest); err != nil || len(manifest.Layers) != 1 {
		t.Fatalf("%+v, %v", manifest, err)
	}
	if !bytes.Equal(blob(manifest.Layers[0]), files["xpkg-chart-1.2.3.tgz"]) ||
		!bytes.Contains(blob(manifest.Config), []byte(`"version":"1.2.3"`)) {
		t.Errorf("the OCI layout has the config %s and a layer of %d bytes", blob(manifest.Config), manifest.Layers[0].Size)
	}
}

// Manifests name every platform, and the formula has the downloads of both systems.
// The programs and the control planes can have the same platforms.
func TestListsOfPlatformsAreIndependent(t *testing.T) {
	for list, want := range map[string][]platform{
		"linux/amd64": {{"linux", "amd64"}}, "linux/amd64,linux/arm64": {{"linux", "amd64"}, {"linux", "arm64"}}, "": nil,
	} {
		o := options{version: version, out: "out"}
		if err := o.parse(list, list); err != nil || !slices.Equal(o.platforms, want) || !slices.Equal(o.planes, want) {
			t.Errorf("%q: programs for %v, control planes for %v, %v", list, o.platforms, o.planes, err)
		}
	}
	if err := (&options{version: version, out: "out"}).parse("linux/amd64", "linux"); err == nil {
		t.Error("a platform without an architecture is accepted")
	}
}

func TestManifestsOfAllPlatforms(t *testing.T) {
	o := options{out: t.TempDir(), version: version, url: "https://example.org/download/"}
	if err := o.parse("linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64", ""); err != nil {
		t.Fatal(err)
	}
	archives := map[platform]artifact{}
	for i, p := range o.platforms {
		var err error
		if archives[p], err = o.archive("xpkg", p, []file{{
			name: p.executable("xpkg"), content: fmt.Append(nil, i), executable: true,
		}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.manifests(archives); err != nil {
		t.Fatal(err)
	}
	files := contents(t, o.out)
	var plugin struct {
		Spec struct {
			Version   string
			Platforms []struct{ URI, SHA256, Bin string }
		}
	}
	if err := yaml.Unmarshal(files["crossplane.krew.yaml"], &plugin); err != nil {
		t.Fatal(err)
	}
	if plugin.Spec.Version != version || len(plugin.Spec.Platforms) != 5 {
		t.Errorf("%+v", plugin)
	}
	for i, p := range plugin.Spec.Platforms {
		if want := archives[o.platforms[i]]; p.URI != "https://example.org/download/v1.2.3/"+want.name ||
			p.SHA256 != want.sha256 || p.Bin != o.platforms[i].executable("xpkg") {
			t.Errorf("%+v, want %+v", p, want)
		}
	}
	formula := string(files["xpkg.rb"])
	for p, a := range archives {
		if strings.Contains(formula, a.sha256) != (p.os != "windows") {
			t.Errorf("%s in the formula:\n%s", p, formula)
		}
	}
	if want := "  on_macos do\n    on_intel do\n      url \"https://example.org/download/v1.2.3/xpkg_1.2.3_darwin_amd64.tar.gz\"\n"; !strings.Contains(
		formula, want,
	) {
		t.Errorf("%q is missing in\n%s", want, formula)
	}
	if strings.Count(formula, " do\n") != strings.Count(formula, "  end\n")-1 { // The method install has an end too.
		t.Errorf("unbalanced blocks in\n%s", formula)
	}
}

// Wrong options are refused before anything is built.
func TestOptionsAreChecked(t *testing.T) {
	for name, o := range map[string]options{
		"no version":    {out: "out"},
		"no semver":     {out: "out", version: "1.2"},
		"no folder":     {version: version},
		"shell in name": {out: "out", version: "v1.2.3;rm"},
	} {
		if err := o.parse("linux/amd64", ""); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	o := options{out: "out", version: version}
	if err := o.parse("linux", ""); err == nil {
		t.Error("a platform without an architecture is accepted")
	}
}

// copySources copies the files that git tracks, so that a build in the copy has another path and other times.
func copySources(t *testing.T, from, to string) {
	t.Helper()
	list, err := exec.CommandContext(
		t.Context(), "git", "-C", from, "ls-files", "-z", "--cached", "--others", "--exclude-standard",
	).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Split(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		content, err := os.ReadFile(filepath.Join(from, name))
		if errors.Is(err, os.ErrNotExist) {
			continue // The file was deleted and not committed yet.
		}
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o700)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
