package artifact

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/indexlayer"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/index"
)

// InspectCmd implements `xpkg inspect`.
type InspectCmd struct {
	Package    string `arg:"" name:"src" help:"Package to inspect: a reference, a .xpkg file, oci:DIR for the folder of an OCI layout, or - for standard input."`
	Platform   string `placeholder:"OS/ARCH" help:"Platform to choose when there are several. Default is linux/amd64."`
	Objects    bool   `help:"List every object."`
	TrustIndex bool   `help:"Read the index layer of the package, if it has one, instead of package.yaml: faster, but not verified."`
	CacheDir   string `placeholder:"DIR" env:"XPKG_CACHE_DIR" config:"" help:"Folder of the package cache, which records verified index layers. Default is xpkg/packages in the user's cache folder."`
	view.OutputFlag
	location.TransferFlags
}

// Run prints the metadata and content of a package.
func (c *InspectCmd) Run(env *terminal.Env) error {
	from, err := location.Parse(c.Package)
	if err != nil {
		return err
	}
	report, err := c.inspect(env, from)
	if err != nil {
		return err
	}
	if report.Content.IndexLayer == indexContradicts {
		fmt.Fprintln(
			env.Stderr, "warning: IndexMismatch: the index layer of the package differs from its package.yaml, which is shown",
		)
	}
	return c.Print(env.Stdout, report, func(w io.Writer) { writeInspection(w, report, c.Objects) })
}

func (c *InspectCmd) inspect(env *terminal.Env, from location.Location) (report *inspection, err error) {
	err = c.WithPackage(env,
		from, c.Platform, func(m location.Transfer, o *location.Opened, manifest oci.Manifest) (err error) {
			report, err = c.describe(env, m, o, manifest)
			return err
		})
	return report, err
}

func (c *InspectCmd) describe(
	env *terminal.Env, m location.Transfer, o *location.Opened, manifest oci.Manifest,
) (*inspection, error) {
	platform, err := location.ParsePlatform(c.Platform)
	if err != nil {
		return nil, err
	}
	report := &inspection{Source: o.String(), Digest: o.Root().Digest, Manifest: describeManifest(manifest)}
	if manifest.Digest != manifest.Root {
		_, index, err := oci.ReadDocument(env.Context, o, o.Root(), m.Limits)
		if err != nil {
			return nil, err
		}
		report.Index = describeIndex(index)
	}
	// The image configuration is not part of a package; if it cannot be read, only the platform is omitted.
	if image, err := image.Load(env.Context, o, platform, m.Limits); err == nil && report.Manifest.Platform == "" &&
		!image.Platform().IsZero() {
		report.Manifest.Platform = image.Platform().String()
	}
	report.Content, err = c.content(env.Context, o, manifest)
	return report, err
}

// content returns the content of the package: from its index layer, if it was verified on this machine or is
// trusted, otherwise from package.yaml.
func (c *InspectCmd) content(ctx context.Context, a oci.Artifact, m oci.Manifest) (contentView, error) {
	layer := indexlayer.Find(m)
	if layer == nil {
		return c.fromYAML(ctx, a, m, nil)
	}
	proofs := openProofs(c.CacheDir)
	defer proofs.close()
	proven := proofs.has(ctx, m.Digest, layer.Digest)
	x, err := indexlayer.Read(ctx, a, *layer)
	if err != nil && !errors.Is(err, indexlayer.ErrMismatch) && !errors.Is(err, index.ErrDamaged) {
		return contentView{}, err
	}
	if x != nil && (proven || c.TrustIndex) {
		pkg, err := x.Package(nil, c.StreamLimits())
		if err == nil {
			return describeContent(pkg, x, fromIndex, trust(proven)), nil
		}
		x = nil
	}
	view, err := c.fromYAML(ctx, a, m, &claim{x})
	if err == nil && view.IndexLayer == indexProven {
		proofs.add(ctx, m.Digest, layer.Digest)
	}
	return view, err
}

// claim is the unverified content of an index layer. Its index is nil if the layer cannot be read.
type claim struct{ index *index.Index }

// fromYAML reads package.yaml and compares a claim with it.
func (c *InspectCmd) fromYAML(ctx context.Context, a oci.Artifact, m oci.Manifest, claim *claim) (contentView, error) {
	pkg, stream, err := location.ReadPackage(ctx, a, m, c.LimitFlags)
	problems := xpkg.Findings(err)
	if problems != nil {
		// The readable part of a refused package is shown.
		if partial := c.readPartially(stream); partial.Meta.Kind != "" {
			pkg, err = partial, nil
		}
	}
	if err != nil {
		return contentView{}, err
	}
	index, err := index.New(pkg)
	if err != nil {
		return contentView{}, err
	}
	state := indexAbsent
	if claim != nil {
		state = indexProven
		if claim.index == nil || claim.index.Matches(pkg) != nil {
			state = indexContradicts
		}
	}
	view := describeContent(pkg, index, fromYAML, state)
	view.Size, view.Problems = int64(len(stream)), problems
	return view, nil
}

// readPartially returns the readable part of a refused package.
func (c *InspectCmd) readPartially(stream []byte) *xpkg.Package {
	pkg, _ := xpkg.Inspect(stream, xpkg.ReadOptions{Limits: c.StreamLimits(), Policy: xpkg.PolicyInstall().Lenient()})
	return pkg
}

func trust(proven bool) indexState {
	if proven {
		return indexProven
	}
	return indexUnproven
}
