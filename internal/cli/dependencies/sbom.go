package dependencies

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	metav1 "github.com/xpkg-dev/xpkg/apis/pkg/meta/v1"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/selection"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/sbom"
	"github.com/xpkg-dev/xpkg/internal/signature"
	"github.com/xpkg-dev/xpkg/internal/version"
	"github.com/xpkg-dev/xpkg/internal/versions"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// SBOMCmd implements `xpkg sbom`.
type SBOMCmd struct {
	Packages  []string `arg:"" optional:"" name:"package" help:"Packages with their dependencies: REPOSITORY:TAG; REPOSITORY@CONSTRAINT; REPOSITORY@sha256:DIGEST; or the folder of a package. Default is what is installed."`
	Output    string   `short:"o" default:"cyclonedx" enum:"cyclonedx,spdx" help:"Format: cyclonedx (CycloneDX 1.6, JSON) or spdx (SPDX 2.3, JSON)."`
	Namespace string   `default:"crossplane-system" config:"" help:"Namespace of the manager, which contains the pull secrets."`
	TreeFlags
	connection.ClusterFlags
}

// Run prints a bill of materials of installed packages, of a lock file, or of a dependency tree.
func (c *SBOMCmd) Run(env *terminal.Env) (err error) {
	created, err := creationTime()
	if err != nil {
		return err
	}
	f, locate, err := c.closure(env)
	if err != nil {
		return err
	}
	r, err := c.open(env, locate)
	if err != nil {
		return err
	}
	defer terminal.Close(&err, r)
	all, err := r.bill(env, f)
	if err != nil {
		return err
	}
	var text []byte
	if c.Output == "spdx" {
		text, err = sbom.SPDX(all, version.Version, created)
	} else {
		text, err = sbom.CycloneDX(all, version.Version)
	}
	if err != nil {
		return err
	}
	_, err = env.Stdout.Write(text)
	return err
}

// closure returns the packages of the bill, and where they are.
func (c *SBOMCmd) closure(env *terminal.Env) (lockfile.File, versions.Locate, error) {
	if c.Lock != "" || len(c.Packages) > 0 {
		f, err := c.of(env, c.Packages)
		return f, nil, err
	}
	cluster, all, err := selection.Read(env.Context, c.ClusterFlags, inventory.LoadNamed)
	if err != nil {
		return lockfile.File{}, nil, err
	}
	return all.Closure(), versions.LocatorIn(cluster, c.Namespace, all), nil
}

// creationTime returns the time in SOURCE_DATE_EPOCH, as builds use it, or the current time.
func creationTime() (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		return time.Now(), nil
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, terminal.ErrUsage.New(err, "SOURCE_DATE_EPOCH is %q", text).
			WithDo("Set it to a number of seconds since 1970.")
	}
	return time.Unix(seconds, 0), nil
}

// bill describes the packages of a dependency tree and the images of their runtimes.
func (r *rootResolver) bill(env *terminal.Env, f lockfile.File) ([]sbom.Package, error) {
	p := terminal.StartTask(env.Stderr, "reading %s", wording.Count(len(f.Packages), "package"))
	defer p.End()
	parts := make([][]sbom.Package, len(f.Packages))
	err := p.Each(env.Context, len(f.Packages), readsForBundle, func(ctx context.Context, i int) (err error) {
		parts[i], err = r.billOf(ctx, f, f.Packages[i])
		return err
	})
	var out []sbom.Package
	for _, part := range parts {
		out = append(out, part...)
	}
	return out, err
}

// billOf describes a package and the images of its runtime.
func (r *rootResolver) billOf(ctx context.Context, f lockfile.File, locked lockfile.Package) ([]sbom.Package, error) {
	ref := locked.Reference()
	o, err := r.locate(ctx, ref)
	if err != nil {
		return nil, err
	}
	read, err := r.content.Prove(ctx, o, locked.Digest)
	if err != nil {
		return nil, err
	}
	signers, err := r.content.Verify(ctx, o, locked.Digest, true)
	if err != nil {
		return nil, err
	}
	own := sbom.Package{
		Ref: ref, Kind: string(locked.Kind), Description: read.Meta.Annotations[metav1.AnnotationDescription],
		License: read.Meta.Annotations[metav1.AnnotationLicense], Source: read.Meta.Annotations[metav1.AnnotationSource],
		Signers: signature.Signers(signers),
	}
	for _, d := range locked.Dependencies {
		if needed, ok := f.Find(d.Package); ok {
			own.Needs = append(own.Needs, needed.Reference())
		}
	}
	images, err := runtimeImages(read.Meta, ref)
	if err != nil {
		return nil, err
	}
	out := []sbom.Package{}
	for _, image := range images {
		d, err := r.digestOf(ctx, image)
		if err != nil {
			return nil, fmt.Errorf("the runtime of %s: %w", ref, err)
		}
		image = image.WithDigest(d)
		own.Needs = append(own.Needs, image)
		out = append(out, sbom.Package{Ref: image})
	}
	return append(out, own), nil
}

func (r *rootResolver) digestOf(ctx context.Context, image oci.Reference) (oci.Digest, error) {
	if !image.Digest.IsZero() {
		return image.Digest, nil
	}
	o, err := r.locate(ctx, image)
	if err != nil {
		return oci.Digest{}, err
	}
	return r.content.Resolve(ctx, o, 0)
}
