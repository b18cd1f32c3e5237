package author

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"

	"github.com/xpkg-dev/xpkg/internal/cli/author/daemon"
	"github.com/xpkg-dev/xpkg/internal/cli/author/goprogram"
	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/archive"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
)

// ErrRuntimeImage is the code for a runtime image that cannot be found.
var ErrRuntimeImage = errcode.Code{
	Name: "RuntimeImageNotFound", Class: errcode.NotFound,
	Cause: "The runtime image is not in the local Docker daemon, and its name contains no registry.",
	Fix:   "Build the image first, or save it with `docker save` and pass the file with --embed-runtime-image-tarball.",
}

// runtimeFlags select the runtime image of a package.
type runtimeFlags struct {
	EmbedRuntimeImage        string `xor:"runtime" placeholder:"NAME" help:"Runtime image to embed in the package: an image of the local Docker daemon or, by its full name, of a registry."`
	EmbedRuntimeImageTarball string `xor:"runtime" placeholder:"FILE" help:"Runtime image to embed, as a file that docker save or an OCI tool wrote."`
	EmbedGoProgram           string `xor:"runtime" placeholder:"DIR" help:"Folder of the main package of a Go program to build and embed. No container engine is needed."`
	Platform                 string `placeholder:"OS/ARCH" help:"Platform of the package. Default is the platform of its runtime image, linux and the architecture of this machine for a Go program, or linux/amd64 without a runtime."`
}

// runtime returns the runtime image, or nil. Its layers are read until done is called; the caller calls done if there
// is no error.
func (f runtimeFlags) runtime(
	env *terminal.Env, t location.TransferFlags,
) (_ *image.Image, done func() error, err error) {
	done = func() error { return nil }
	if f.EmbedRuntimeImage == "" && f.EmbedRuntimeImageTarball == "" && f.EmbedGoProgram == "" {
		return nil, done, nil
	}
	platform, err := location.ParsePlatform(f.Platform)
	if err != nil {
		return nil, done, err
	}
	if f.EmbedGoProgram != "" {
		image, err := f.goProgram(env, platform)
		return image, done, err
	}
	a, done, err := f.source(env, t)
	if err != nil {
		return nil, done, err
	}
	image, err := image.Load(env.Context, a, platform, t.ImageLimits())
	if err != nil {
		return nil, done, errors.Join(err, done())
	}
	return image, done, nil
}

// goProgram builds the program of --embed-go-program.
func (f runtimeFlags) goProgram(env *terminal.Env, platform oci.Platform) (*image.Image, error) {
	if f.Platform == "" {
		platform = oci.Platform{OS: "linux", Architecture: goruntime.GOARCH}
	}
	task := terminal.StartTask(env.Stderr, "building the program in %s for %s", f.EmbedGoProgram, platform)
	defer task.End()
	return goprogram.Program{Folder: f.EmbedGoProgram, Platform: platform, Messages: task}.Image(env.Context)
}

func (f runtimeFlags) source(env *terminal.Env, t location.TransferFlags) (oci.Artifact, func() error, error) {
	if file := f.EmbedRuntimeImageTarball; file != "" {
		a, err := location.OpenArchive(env, file, t.ArchiveLimit(), t.ImageLimits())
		if err != nil {
			return nil, func() error { return nil }, err
		}
		return a, a.Close, nil
	}
	a, err := fromDaemon(env.Context, f.EmbedRuntimeImage, t)
	if err == nil {
		fmt.Fprintf(env.Stderr, "note: using the runtime image %s of the Docker daemon\n", terminal.Safe(f.EmbedRuntimeImage))
		return a, a.Close, nil
	}
	if !errors.Is(err, daemon.ErrNotThere) {
		return nil, func() error { return nil }, err
	}
	return f.fromRegistry(env, t, err)
}

func fromDaemon(ctx context.Context, name string, t location.TransferFlags) (*archive.Archive, error) {
	saved, err := daemon.Default().Save(ctx, name)
	if err != nil {
		return nil, err
	}
	defer saved.Close()
	return archive.Read(ctx, saved, "", t.ArchiveLimit(), t.ImageLimits())
}

// fromRegistry returns an image from the registry in its name. A name without a registry is never read from
// Docker Hub: it names a local image, and the image with that name on Docker Hub can be a different one.
func (f runtimeFlags) fromRegistry(
	env *terminal.Env, t location.TransferFlags, why error,
) (oci.Artifact, func() error, error) {
	nothing := func() error { return nil }
	ref, err := oci.ParseReference(f.EmbedRuntimeImage, oci.ParseOptions{})
	if err != nil {
		return nil, nothing, ErrRuntimeImage.New(why, "the image %s does not exist", f.EmbedRuntimeImage)
	}
	a, _, done, err := openRegistryImage(env, t, ref.String())
	return a, done, err
}

// openRegistryImage opens an image in a registry. It returns its reference with the digest.
func openRegistryImage(
	env *terminal.Env, t location.TransferFlags, name string,
) (_ oci.Artifact, _ oci.Reference, done func() error, err error) {
	nothing := func() error { return nil }
	ref, err := oci.ParseReference(name, oci.ParseOptions{})
	if err != nil {
		return nil, oci.Reference{}, nothing, err
	}
	p := terminal.StartTask(env.Stderr, "reading %s", ref)
	m, err := t.NewTransfer(env, p, location.Location{Kind: location.Registry, Ref: ref})
	if err != nil {
		p.End()
		return nil, oci.Reference{}, nothing, err
	}
	done = func() error {
		p.End()
		m.Remote.Close()
		return nil
	}
	o, err := m.Open(env.Context, location.Location{Kind: location.Registry, Ref: ref})
	if err != nil {
		return nil, oci.Reference{}, nothing, errors.Join(err, done())
	}
	fmt.Fprintf(p, "the runtime image is %s\n", o.Ref)
	return o, o.Ref, done, nil
}
