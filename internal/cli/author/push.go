package author

import (
	"errors"
	"fmt"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/signing"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/firstgen"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/archive"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/packagestream"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// PushCmd implements `xpkg push`.
type PushCmd struct {
	// First is the reference, or a kind before it, as in the packages guide.
	First         string            `arg:"" name:"kind-or-ref" help:"Destination, for example ghcr.io/org/provider-x:v0.1.0, or the expected kind of the package before it."`
	Second        string            `arg:"" optional:"" name:"ref" help:"Destination, after a kind."`
	PackageFiles  []string          `short:"f" name:"package-files" aliases:"package-file" placeholder:"FILE" help:"Package to push. Several, one for each platform, are pushed as one index; those of a Project are pushed to their own repositories, the Functions first. Default is the only .xpkg file in this folder, or those of one Project."`
	OCIAnnotation map[string]string `short:"a" name:"oci-annotation" placeholder:"KEY=VALUE" help:"Annotation to add to the manifests and to the index. It changes the digest."`
	SignKey       string            `placeholder:"FILE" help:"Private key (PEM) that signs what is pushed: PKCS #8, or encrypted by cosign, with its password in COSIGN_PASSWORD."`
	location.TransferFlags
	flags.DataDirFlag

	key *signing.Key
}

// Run pushes a package and prints its digest in the registry.
func (c *PushCmd) Run(env *terminal.Env) error {
	target, kind := c.First, ""
	if c.Second != "" {
		kind = inventory.KindNamed(c.First)
		if kind == "" && strings.HasSuffix(c.First, ".xpkg") {
			return terminal.ErrUsage.New(nil, "%s is a file, which a flag names", c.First).
				WithDo("Push it with `xpkg push -f %s %s`.", wording.ShellWord(c.First), wording.ShellWord(c.Second))
		}
		if kind == "" {
			return terminal.ErrUsage.New(nil, "%s is not a kind of package", c.First).
				WithDo("Write provider, configuration or function before the reference, or omit the kind.")
		}
		target = c.Second
	}
	ref, err := flags.ParseReference(target)
	if err != nil {
		return err
	}
	if c.SignKey != "" {
		if c.key, err = flags.ReadSigningKey(env.Context, c.SignKey); err != nil {
			return err
		}
	}
	files := c.PackageFiles
	if len(files) == 0 {
		if files, err = c.defaultFiles(env); err != nil {
			return err
		}
	}
	return c.push(env, files, ref, xpkg.Kind(kind))
}

func (c *PushCmd) push(env *terminal.Env, files []string, ref oci.Reference, kind xpkg.Kind) (err error) {
	archives, closeAll, err := c.open(env, files)
	defer func() { err = errors.Join(err, closeAll()) }()
	if err != nil {
		return err
	}
	parts := c.parts(env, archives)
	for i, a := range archives {
		if parts.configuration < 0 || parts.configuration == i {
			if err := c.checkKind(env, a, kind, files[i]); err != nil {
				return err
			}
		}
		if err := c.checkTag(env, a, ref); err != nil {
			return err
		}
	}
	packages, err := c.destinations(env, archives, parts, ref)
	if err != nil {
		return err
	}
	c.Keychain = c.WriteKeychain()
	for _, p := range packages {
		if err := c.pushTo(env, p); err != nil {
			return err
		}
	}
	return nil
}

func (c *PushCmd) pushTo(env *terminal.Env, a pushedPackage) error {
	to := location.Location{Kind: location.Registry, Ref: a.ref}
	p := terminal.StartTask(env.Stderr, "pushing to %s", a.ref)
	defer p.End()
	m, err := c.NewTransfer(env, p, to)
	if err != nil {
		return err
	}
	defer m.Remote.Close()
	if c.key != nil {
		// The tag never refers to an image without its signature.
		if _, err := c.key.Attach(env.Context, m.Remote, a.ref, a.Root(), signing.Statement{}); err != nil {
			return err
		}
	}
	digest, err := m.Write(env.Context, to, a, "")
	p.End()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(env.Stdout, "%s\n", terminal.Safe(to.At(digest)))
	return err
}

// checkTag fails for a package whose files or metadata cannot be read, and for a package of the first generation, or
// one that was converted from it, that states another version than its tag: they could not be installed. Other images
// can be pushed.
func (c *PushCmd) checkTag(env *terminal.Env, a oci.Artifact, ref oci.Reference) error {
	m, err := oci.FindManifest(env.Context, a, oci.Platform{}, c.ImageLimits())
	if err != nil {
		return nil // The push reports a manifest that it cannot read.
	}
	content, err := packagestream.ReadContent(env.Context, a, m, packagestream.Options{
		Limits: c.ImageLimits(), Format: c.StreamLimits(),
	})
	if errors.Is(err, oci.ErrNoPackageYAML) {
		return nil // The image is no package, but for example a runtime image.
	}
	if err != nil {
		return err
	}
	meta, err := xpkg.ReadMeta(content.Stream, xpkg.ReadOptions{Limits: c.StreamLimits()})
	if errors.Is(err, xpkg.ErrNoMeta) && m.Base == nil {
		return nil // The image contains a package.yaml of another program.
	}
	if err != nil {
		return err
	}
	return firstgen.CheckConvertedTag(meta, ref.Tag)
}

// checkKind checks that a package has the kind that the command line states.
func (c *PushCmd) checkKind(env *terminal.Env, a oci.Artifact, kind xpkg.Kind, file string) error {
	if kind == "" {
		return nil
	}
	m, err := oci.FindManifest(env.Context, a, oci.Platform{}, c.ImageLimits())
	if err != nil {
		return err
	}
	pkg, _, err := location.ReadPackage(env.Context, a, m, c.LimitFlags)
	if err != nil {
		return err
	}
	if pkg.Meta.Kind != kind {
		return xpkg.ErrWrongKind.New(nil, "%s is a %s, not a %s", file, pkg.Meta.Kind, kind).
			WithDo("Push it as its own kind, or choose another file with -f.")
	}
	return nil
}

// join returns one artifact of all files. Several files become an index, with the
// platform in the configuration of each image.
func (c *PushCmd) join(env *terminal.Env, archives []*archive.Archive) (oci.Artifact, error) {
	if len(archives) == 1 {
		return annotate(env.Context, archives[0], c.OCIAnnotation, c.ImageLimits())
	}
	var images []*image.Image
	for i, archive := range archives {
		if archive.Root().MediaType.IsIndex() {
			return nil,
				image.ErrInvalidImageInput.New(nil, "file %d of %d is already an index of several platforms", i+1, len(archives)).
					WithDo("Push it separately.")
		}
		a, err := annotate(env.Context, archive, c.OCIAnnotation, c.ImageLimits())
		if err != nil {
			return nil, err
		}
		image, err := image.Load(env.Context, a, oci.Platform{}, c.ImageLimits())
		if err != nil {
			return nil, err
		}
		images = append(images, image)
	}
	index, err := image.NewIndex(images...)
	if err != nil {
		return nil, err
	}
	return annotate(env.Context, index, c.OCIAnnotation, c.ImageLimits())
}
