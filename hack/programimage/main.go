// Command programimage makes the image of a program of ours, for xpkg build
// --embed-runtime-image-tarball: the program and nothing else, for this machine's
// kind of processor. It needs no container engine.
package main

import (
	"archive/tar"
	"bytes"
	"flag"
	"fmt"
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

func main() {
	out := flag.String("o", "", "file to write")
	flag.Parse()
	if *out == "" || flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: programimage -o FILE FOLDER-OF-THE-PROGRAM")
		os.Exit(3)
	}
	if err := run(*out, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "programimage:", err)
		os.Exit(1)
	}
}

func run(out, folder string) error {
	program := filepath.Base(folder)
	data, err := compile(folder)
	if err != nil {
		return err
	}
	layer, err := layerOf(program, data)
	if err != nil {
		return err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return err
	}
	image, err = mutate.ConfigFile(image, config(image, program))
	if err != nil {
		return err
	}
	ref, err := name.NewTag("xpkg.dev/" + program + ":latest")
	if err != nil {
		return err
	}
	return tarball.WriteToFile(out, ref, image)
}

// compile gives a static executable.
func compile(folder string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "programimage")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // It is a folder for temporary files.
	path := filepath.Join(dir, "program")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, "./"+filepath.Clean(folder))
	build.Env, build.Stderr = append(os.Environ(), "CGO_ENABLED=0"), os.Stderr
	if err := build.Run(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// layerOf has the program as its only file.
func layerOf(program string, data []byte) (v1.Layer, error) {
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	if err := w.WriteHeader(&tar.Header{Name: program, Mode: 0o755, Size: int64(len(data)), Format: tar.FormatUSTAR}); err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(buffer.Bytes())), nil })
}

func config(image v1.Image, program string) *v1.ConfigFile {
	c := &v1.ConfigFile{OS: "linux", Architecture: runtime.GOARCH, Config: v1.Config{Entrypoint: []string{"/" + program}, User: "2000:2000"}}
	if had, err := image.ConfigFile(); err == nil {
		c.RootFS = had.RootFS
	}
	return c
}
