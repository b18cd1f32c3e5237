package trust

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/content"
	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/origin"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/signature"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// VerifyCmd implements `xpkg verify`.
type VerifyCmd struct {
	Images      []string `arg:"" optional:"" name:"image" help:"Images to verify, each a reference. Default is all installed packages with their runtime images."`
	Key         string   `placeholder:"FILE" help:"Public key (PEM) that must have signed. Without it and --identity, ImageConfigs decide."`
	Identity    string   `placeholder:"SUBJECT" requirement:"" help:"Subject of the certificate that must have signed, such as an email address or the URL of a workflow."`
	Issuer      string   `placeholder:"ISSUER" requirement:"" help:"Issuer of the identity."`
	TrustedRoot string   `placeholder:"FILE" help:"Trust root of an own instance of Sigstore (trusted_root.json), for --identity. Default is that of the public instance."`
	Attestation []string `placeholder:"URI" requirement:"" help:"Attestation that must exist, too: the type of its predicate."`
	ImageConfig []string `placeholder:"FILE" config:"" help:"File with the ImageConfigs that decide, in place of those of the control plane, and with the Secrets that they name (YAML)."`
	Namespace   string   `default:"crossplane-system" config:"" help:"Namespace of the manager, which contains the secrets."`
	content.ContentFlags
	connection.ClusterFlags
	view.ListOutputFlag
}

// Validate returns an error for contradicting flags.
func (c *VerifyCmd) Validate() error {
	switch {
	case c.Key != "" && c.Identity != "":
		return errors.New("--key and --identity cannot be used together")
	case (c.Identity == "") != (c.Issuer == ""):
		return errors.New("--identity and --issuer are used together")
	case c.TrustedRoot != "" && c.Identity == "":
		return errors.New("--trusted-root is for --identity")
	case len(c.Attestation) > 0 && c.Key == "" && c.Identity == "":
		return errors.New("--attestation is for --key or --identity")
	}
	return nil
}

// verified is an image with what is known of its signatures.
type verified struct {
	// Package is the installed package to which the image belongs, as KIND/NAME.
	Package string `json:"package,omitempty"`
	// Image is the image as it was requested, with its digest.
	Image string `json:"image"`
	// Verdicts state who has signed. They are empty if no signature is required.
	Verdicts []signature.Verdict `json:"verdicts,omitempty"`
	// Error is why the image would be refused.
	Error *problem `json:"error,omitempty"`

	ref     oci.Reference
	secrets []corev1.LocalObjectReference
	origin  fetch.Origin
	err     error
}

type problem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// verifyAtOnce is the maximum number of images that are verified concurrently.
const verifyAtOnce = 8

// Run verifies images by what their registries have now.
func (c *VerifyCmd) Run(env *terminal.Env) (err error) {
	source := &content.LazySource{Flags: c.ContentFlags}
	defer terminal.Close(&err, source)
	registry, err := source.Open(env.Context)
	if err != nil {
		return err
	}
	images, err := c.images(env)
	if err != nil {
		return err
	}
	task := terminal.StartTask(env.Stderr, "verifying %s", wording.Count(len(images), "image"))
	defer task.End()
	var group errgroup.Group
	group.SetLimit(verifyAtOnce)
	for _, image := range images {
		group.Go(func() error {
			image.verify(env.Context, registry)
			return env.Context.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	task.End()
	return c.report(env, images)
}

func (v *verified) verify(ctx context.Context, registry *fetch.Source) {
	if v.ref.Digest.IsZero() {
		d, err := registry.Resolve(ctx, v.origin, 0)
		if v.err = err; err != nil {
			return
		}
		v.ref = v.ref.WithDigest(d)
		v.Image = v.ref.String()
	}
	v.Verdicts, v.err = registry.Examine(ctx, v.origin, v.ref.Digest)
}

// report prints the result. It fails if an image would be refused, and if no signature of a named image is required.
func (c *VerifyCmd) report(env *terminal.Env, images []*verified) error {
	if len(images) == 1 && images[0].err != nil {
		return images[0].err
	}
	for _, image := range images {
		if len(c.Images) > 0 && len(image.Verdicts) == 0 && image.err == nil {
			return terminal.ErrUsage.New(nil, "no ImageConfig requires a signature of %s, so nothing was verified", image.ref).
				WithDo("Name the signer with --key, or with --identity and --issuer.")
		}
	}
	table := view.Table{
		Header: []string{"IMAGE", "SIGNED BY", "REQUIRED BY"}, Least: []string{"IMAGE"}, Empty: "No package is installed.",
	}
	var names []string
	var refused []*verified
	for _, image := range images {
		signers, by := "-", "-"
		switch {
		case image.err != nil:
			failed := errcode.From(image.err)
			image.Error = &problem{failed.Code.Name, failed.What}
			refused = append(refused, image)
			signers = "! " + failed.Code.Name
		case len(image.Verdicts) > 0:
			var why []string
			for _, v := range image.Verdicts {
				why = append(why, v.Config)
			}
			signers = strings.Join(signature.Signers(image.Verdicts), ", ")
			by = cmp.Or(strings.Join(slices.Compact(why), ", "), "-")
		}
		names = append(names, image.Image)
		table.Rows = append(table.Rows, []string{image.Image, signers, by})
	}
	list := view.List{Value: append([]*verified{}, images...), Names: names, Table: table, Empty: env.Stderr}
	if err := c.Print(env.Stdout, list); err != nil {
		return err
	}
	for i, image := range refused {
		if i == len(refused)-1 {
			return image.err
		}
		fmt.Fprintf(env.Stderr, "%s: %s\n", image.Error.Code, terminal.Safe(image.Error.Message))
	}
	return nil
}

// images returns the images to verify.
func (c *VerifyCmd) images(env *terminal.Env) ([]*verified, error) {
	images, err := c.named()
	if err != nil {
		return nil, err
	}
	files, err := content.ReadImageConfigs(env, c.ImageConfig)
	if err != nil {
		return nil, err
	}
	given, err := c.required(env.Context)
	if err != nil {
		return nil, err
	}
	var cluster client.Client
	if len(c.Images) == 0 || given == nil && len(files.Configs) == 0 {
		if cluster, err = c.Client(env.Context); err != nil {
			return nil, err
		}
	}
	if len(images) == 0 {
		if images, err = installed(env.Context, cluster); err != nil {
			return nil, err
		}
	}
	finder := origin.Finder{Reader: origin.ListOnce(cluster), Secrets: cluster, Namespace: c.Namespace}
	for _, image := range images {
		switch {
		case cluster != nil:
			image.origin, _, err = finder.Locate(env.Context, image.ref.String(), image.secrets, corev1.PullIfNotPresent)
		case given != nil:
			image.origin = fetch.Plain(image.ref)
		default:
			image.origin, err = files.Find(image.ref)
		}
		if err != nil {
			return nil, err
		}
		switch {
		case given != nil:
			image.origin.Signed = func(context.Context) ([]signature.Requirement, error) { return given, nil }
		case len(files.Configs) > 0 && cluster != nil:
			by, err := files.Find(image.ref)
			if err != nil {
				return nil, err
			}
			image.origin.Signed = by.Signed
		}
	}
	return images, nil
}

// required returns the requirement of the flags, and nil if ImageConfigs decide.
func (c *VerifyCmd) required(ctx context.Context) ([]signature.Requirement, error) {
	if c.Key != "" {
		text, err := flags.ReadFile(ctx, "the public key", c.Key)
		if err != nil {
			return nil, err
		}
		r, err := byKey(ctx, text, c.Attestation)
		return []signature.Requirement{r}, err
	}
	if c.Identity == "" {
		return nil, nil
	}
	var root []byte
	spec := &v1beta1.CosignVerification{Authorities: []v1beta1.CosignAuthority{{
		Name: "identity", Attestations: wanted(c.Attestation),
		Keyless: &v1beta1.KeylessReference{Identities: []v1beta1.Identity{{Issuer: c.Issuer, Subject: c.Identity}}},
	}}}
	if c.TrustedRoot != "" {
		text, err := flags.ReadFile(ctx, "the trust root", c.TrustedRoot)
		if err != nil {
			return nil, err
		}
		root, spec.TrustedRoot = text, &v1beta1.TrustedRootReference{}
	}
	r, err := signature.NewRequirement(
		ctx, "", spec, func(context.Context, v1beta1.SecretKeySelector) ([]byte, error) { return root, nil },
	)
	return []signature.Requirement{r}, err
}

// named returns the images of the command line.
func (c *VerifyCmd) named() ([]*verified, error) {
	var out []*verified
	for _, image := range c.Images {
		if strings.HasSuffix(image, ".xpkg") {
			return nil, terminal.ErrUsage.New(nil, "%s is a file, and files have no signatures", image).
				WithDo("Name the reference that `xpkg push` printed: `xpkg verify` reads the signatures beside it.")
		}
		ref, err := flags.ParseReference(image)
		if err != nil {
			return nil, err
		}
		out = append(out, &verified{Image: ref.String(), ref: ref})
	}
	return out, nil
}

// installed returns the images of the installed packages, and those of their runtimes.
func installed(ctx context.Context, cluster client.Client) ([]*verified, error) {
	var out []*verified
	revisions, err := state.ListRevisions(ctx, cluster)
	if err != nil {
		return nil, err
	}
	for _, rev := range revisions {
		if !revision.IsActive(rev) {
			continue
		}
		own, err := oci.ParseReference(rev.RevisionSpec().Image, oci.ParseOptions{})
		if err != nil {
			continue // The name of a file in the package cache of the manager.
		}
		if d, err := oci.ParseDigest(rev.RevisionSpec().Digest); err == nil {
			own = own.WithDigest(d)
		}
		images := []oci.Reference{own}
		if s := rev.RuntimeStatus(); s != nil {
			if runs, err := oci.ParseReference(s.RuntimeImage, oci.ParseOptions{}); err == nil && runs.Digest != own.Digest {
				images = append(images, runs)
			}
		}
		for _, ref := range images {
			out = append(out, &verified{
				Package: strings.ToLower(rev.PackageKind()) + "/" + rev.GetLabels()[v1.LabelPackage], Image: ref.String(),
				ref: ref, secrets: rev.RevisionSpec().PackagePullSecrets,
			})
		}
	}
	return out, nil
}
