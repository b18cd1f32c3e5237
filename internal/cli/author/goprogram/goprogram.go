// Package goprogram builds the runtime image of a Go program, without a container engine.
package goprogram

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"

	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
)

// Codes for programs that cannot be built.
var (
	ErrNoGo = errcode.Code{
		Name: "GoNotFound", Class: errcode.NotFound,
		Cause: "The Go toolchain, which builds the program of --embed-go-program, is not in PATH.",
		Fix:   "Install Go from https://go.dev/dl, or build an image with another tool and pass it with --embed-runtime-image-tarball.",
	}
	ErrGoBuild = errcode.Code{
		Name: "GoBuildFailed", Class: errcode.Invalid,
		Cause: "The Go toolchain cannot build the program of --embed-go-program. Its messages are above the error.",
		Fix:   "Run `go build` in the folder of the program, and fix what it reports.",
	}
)

// user is the user and group of the program. It has no account on a node, and satisfies runAsNonRoot.
const user = "65532:65532"

// Program is the main package of a Go program.
type Program struct {
	// Folder is the folder of the main package.
	Folder string
	// Platform is the platform to build for. Its operating system is linux.
	Platform oci.Platform
	// Messages gets the messages of the Go toolchain.
	Messages io.Writer
}

// Image builds the program and returns an image with the program as its entrypoint, the certificates of public CAs and
// an empty /tmp. Equal sources and an equal version of Go result in an equal image on every machine. It fails with
// ErrNoGo or ErrGoBuild.
func (p Program) Image(ctx context.Context) (*image.Image, error) {
	name, executable, err := p.compile(ctx)
	if err != nil {
		return nil, err
	}
	plain, err := layer(name, executable)
	if err != nil {
		return nil, err
	}
	open := func(context.Context) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(plain)), nil }
	compressed, err := image.GzipLayer(ctx, open, oci.MediaTypeDockerLayerGzip)
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(map[string]any{
		"os": p.Platform.OS, "architecture": p.Platform.Architecture,
		"config": map[string]any{"User": user, "Entrypoint": []string{"/" + name}, "WorkingDir": "/"},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{oci.DigestOf(plain).String()}},
	})
	if err != nil {
		return nil, err
	}
	return image.FromConfig(config, []image.Layer{compressed})
}

// compile returns the name of the program, as go build chooses it, and the static executable.
func (p Program) compile(ctx context.Context) (name string, executable []byte, err error) {
	toolchain, err := exec.LookPath("go")
	if err != nil {
		return "", nil, ErrNoGo.New(err, "cannot build %s", p.Folder)
	}
	folder, err := os.MkdirTemp("", "xpkg-program-")
	if err != nil {
		return "", nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	// The folder may be in a module of its own. An output that is a folder makes go build choose the name.
	build := exec.CommandContext(
		ctx, toolchain, "build", "-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false", "-ldflags=-s -w -buildid=",
		"-o", folder+string(filepath.Separator), ".",
	)
	build.Dir, build.Stdout, build.Stderr = p.Folder, p.Messages, p.Messages
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.Platform.OS, "GOARCH="+p.Platform.Architecture)
	if variant := strings.TrimPrefix(p.Platform.Variant, "v"); p.Platform.Architecture == "arm" && variant != "" {
		build.Env = append(build.Env, "GOARM="+variant)
	}
	if err := build.Run(); err != nil {
		return "", nil,
			errors.Join(ctx.Err(), ErrGoBuild.New(err, "cannot build the program in %s for %s", p.Folder, p.Platform))
	}
	built, err := os.ReadDir(folder)
	if err != nil {
		return "", nil, err
	}
	if len(built) != 1 {
		return "", nil, ErrGoBuild.New(nil, "the folder %s contains no main package", p.Folder)
	}
	name = built[0].Name()
	executable, err = fileutil.ReadFile(ctx, filepath.Join(folder, name))
	return name, executable, err
}

// layer returns the tar of an image. Its files belong to root, and have the time of the epoch.
func layer(program string, executable []byte) ([]byte, error) {
	certificates, err := authorities()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range []struct {
		name string
		mode int64
		data []byte
	}{
		{"etc/", 0o755, nil}, {"etc/ssl/", 0o755, nil}, {"etc/ssl/certs/", 0o755, nil},
		{"etc/ssl/certs/ca-certificates.crt", 0o644, certificates},
		{"tmp/", 0o1777, nil},
		{program, 0o755, executable},
	} {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: time.Unix(0, 0),
			Format: tar.FormatUSTAR,
		}
		if strings.HasSuffix(f.name, "/") {
			header.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// authorities returns the certificates of the public CAs that Mozilla trusts, as PEM. They come from a module and not
// from the machine, so that builds are reproducible. CAs with constraints are omitted, because a file cannot express
// these.
func authorities() ([]byte, error) {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		if err := pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}
