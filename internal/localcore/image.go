package localcore

import (
	"archive/tar"
	"bytes"
	"context"
	"debug/buildinfo"
	"debug/elf"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/unpack"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

const (
	// LabelVersion is the label of the version in the configuration of an image.
	LabelVersion = "org.opencontainers.image.version"
	// crdFolder and webhookFolder are the folders of core's image with the manifests that its initialization applies.
	crdFolder     = "crds"
	webhookFolder = "webhookconfigurations"
	// executable is the name of core in the image of a binary.
	executable = "crossplane"
	// user is the user of core's image.
	user = "65532"
)

// minMajor is the oldest supported major version.
const minMajor = 2

// IsExecutable reports whether a file is an executable rather than an archive.
func IsExecutable(file string) (bool, error) {
	f, err := os.Open(file)
	if err != nil {
		return false, err
	}
	defer f.Close()
	magic := make([]byte, len(elf.ELFMAG))
	if _, err := io.ReadFull(f, magic); err != nil {
		return false, nil // A shorter file is no executable.
	}
	return string(magic) == elf.ELFMAG, nil
}

// BinaryImage returns an image with a local executable of core, and with the folders crds and webhookconfigurations
// beside it, as in the image of Crossplane. Without these folders, core works on the permissive CRDs of the manager and
// serves no webhooks. The version of the image is the version of the executable's Go module. It fails with InvalidCore
// if the file is not an executable for this machine.
func BinaryImage(ctx context.Context, file string) (*image.Image, error) {
	if err := checkExecutable(file); err != nil {
		return nil, err
	}
	layer, err := binaryLayer(ctx, file)
	if err != nil {
		return nil, ErrInvalid.New(err, "cannot read %s", file)
	}
	open := func(context.Context) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layer)), nil }
	compressed, err := image.GzipLayer(ctx, open, oci.MediaTypeDockerLayerGzip)
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(map[string]any{
		"os": runtime.GOOS, "architecture": runtime.GOARCH,
		"config": map[string]any{
			"User": user, "Entrypoint": []string{"/" + executable}, "WorkingDir": "/",
			"Labels": map[string]string{LabelVersion: ModuleVersion(file)},
		},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{oci.DigestOf(layer).String()}},
	})
	if err != nil {
		return nil, err
	}
	return image.FromConfig(config, []image.Layer{compressed})
}

// machines are the processors of executables by the names of Go.
var machines = map[string]elf.Machine{
	"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64, "arm": elf.EM_ARM, "386": elf.EM_386, "ppc64le": elf.EM_PPC64,
	"s390x": elf.EM_S390,
}

func checkExecutable(file string) error {
	f, err := elf.Open(file)
	if err != nil {
		return ErrInvalid.New(err, "%s is not a Linux executable", file)
	}
	defer f.Close()
	if want, known := machines[runtime.GOARCH]; known && f.Machine != want {
		return ErrInvalid.New(nil, "%s is an executable for %s, and this machine is %s", file, f.Machine, runtime.GOARCH)
	}
	if slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return ErrInvalid.New(nil, "%s is linked dynamically, and its image would contain no libraries", file).
			WithDo("Build it with CGO_ENABLED=0, as for the image of Crossplane.")
	}
	return nil
}

// ModuleVersion returns the version of the Go module of an executable, or "" if it was not built from a released
// module.
func ModuleVersion(file string) string {
	info, err := buildinfo.ReadFile(file)
	if err != nil || info.Main.Version == "(devel)" {
		return ""
	}
	return info.Main.Version
}

// binaryLayer returns the file system of an image, without times, so that its digest depends on the content alone.
func binaryLayer(ctx context.Context, file string) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	add := func(name string, mode int64, data []byte) error {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(data)), ModTime: time.Unix(0, 0),
			Format: tar.FormatUSTAR,
		}
		if strings.HasSuffix(name, "/") {
			header.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		_, err := w.Write(data)
		return err
	}
	content, err := fileutil.ReadFile(ctx, file)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(add("tmp/", 0o1777, nil), add(executable, 0o755, content)); err != nil {
		return nil, err
	}
	for _, folder := range []string{crdFolder, webhookFolder} {
		files, err := manifestsIn(os.DirFS(filepath.Dir(file)), folder)
		if err != nil {
			return nil, err
		}
		if len(files) == 0 {
			continue
		}
		if err := add(folder+"/", 0o755, nil); err != nil {
			return nil, err
		}
		for _, f := range files {
			if err := add(folder+"/"+f.name, 0o644, f.content); err != nil {
				return nil, err
			}
		}
	}
	return out.Bytes(), w.Close()
}

// manifest is a file with objects.
type manifest struct {
	name    string
	content []byte
}

// maxManifests limits the size of the manifests of core, which have about 2 MiB.
const maxManifests = 32 << 20

// manifestsIn returns the YAML files of a folder in the order of their names, and none if the folder does not exist.
func manifestsIn(files fs.FS, folder string) ([]manifest, error) {
	entries, err := fs.ReadDir(files, folder)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return nil, err
	}
	var out []manifest
	left := int64(maxManifests)
	for _, e := range entries {
		if !e.Type().IsRegular() || !slices.Contains([]string{".yaml", ".yml"}, path.Ext(e.Name())) {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		if left -= info.Size(); left < 0 {
			return nil, ErrInvalid.New(nil, "the manifests in %s have more than %d MiB", folder, maxManifests>>20)
		}
		content, err := fs.ReadFile(files, folder+"/"+e.Name())
		if err != nil {
			return nil, err
		}
		out = append(out, manifest{e.Name(), content})
	}
	return out, nil
}

// VersionOf returns the version of core in an image: its label, or else the tag of its reference. It is empty if
// neither is a version. It fails with CoreVersion for a version that is not supported.
func VersionOf(config unpack.RuntimeConfig, tag string) (string, error) {
	for _, candidate := range []string{config.Labels[LabelVersion], tag} {
		v := version.Parse(candidate)
		if !v.Usable() {
			continue
		}
		if v.Major() < minMajor {
			return "", ErrVersion.New(nil, "Crossplane %s is older than version %d.0", candidate, minMajor)
		}
		return candidate, nil
	}
	return "", nil
}
