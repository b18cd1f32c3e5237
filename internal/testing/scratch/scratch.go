// Package scratch builds images of single programs without a container engine, for tests and for
// the examples.
package scratch

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Compile builds the Go program in a directory and returns the static executable.
func Compile(folder string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "xpkg-program")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "program")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, ".")
	build.Dir = folder // It may be in a module of its own.
	build.Env, build.Stderr = append(os.Environ(), "CGO_ENABLED=0"), os.Stderr
	if err := build.Run(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// Image returns an image with an executable as its only file, which it runs with arguments. Its
// platform is Linux on the architecture of this machine.
func Image(program string, executable []byte, args ...string) (v1.Image, error) {
	layer, err := layer(program, executable)
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	had, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	return mutate.ConfigFile(image, &v1.ConfigFile{
		OS: "linux", Architecture: runtime.GOARCH, RootFS: had.RootFS,
		Config: v1.Config{Entrypoint: []string{"/" + program}, Cmd: args, User: "2000:2000"},
	})
}

// Save writes an image to a file in the format of docker save.
func Save(path, program string, image v1.Image) error {
	ref, err := name.NewTag("xpkg.dev/" + program + ":latest")
	if err != nil {
		return err
	}
	return tarball.WriteToFile(path, ref, image)
}

func layer(program string, executable []byte) (v1.Layer, error) {
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	if err := w.WriteHeader(&tar.Header{
		Name: program, Mode: 0o755, Size: int64(len(executable)), Format: tar.FormatUSTAR,
	}); err != nil {
		return nil, err
	}
	if _, err := w.Write(executable); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (
		io.ReadCloser, error,
	) {
		return io.NopCloser(bytes.NewReader(buffer.Bytes())), nil
	})
}
