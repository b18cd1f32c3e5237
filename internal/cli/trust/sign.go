// Package trust contains the commands for signatures of images: sign, attest and verify.
package trust

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/signature"
	"github.com/xpkg-dev/xpkg/internal/signing"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// SignCmd implements `xpkg sign`.
type SignCmd struct {
	Images []string `arg:"" name:"image" help:"Images to sign, each a reference. A tag is resolved, and its digest is signed."`
	Key    string   `required:"" placeholder:"FILE" help:"Private key (PEM): PKCS #8, or encrypted by cosign, with its password in COSIGN_PASSWORD."`
	location.TransferFlags
	flags.DataDirFlag
}

// Run signs images that have no signature by the key yet.
func (c *SignCmd) Run(env *terminal.Env) error {
	return c.each(env, func(client *remote.Client, key *signing.Key, ref oci.Reference, image oci.Descriptor) error {
		signed, err := isSigned(env.Context, client, key, ref.WithDigest(image.Digest))
		if err != nil {
			return err
		}
		word := "is signed with the key already"
		if !signed {
			if _, err := key.Attach(env.Context, client, ref, image, signing.Statement{}); err != nil {
				return err
			}
			word = "is signed"
		}
		_, err = fmt.Fprintf(env.Stdout, "%s %s\n", ref.WithDigest(image.Digest), word)
		return err
	})
}

// each calls a function with the key and each image.
func (c *SignCmd) each(
	env *terminal.Env, use func(*remote.Client, *signing.Key, oci.Reference, oci.Descriptor) error,
) error {
	key, err := flags.ReadSigningKey(env.Context, c.Key)
	if err != nil {
		return err
	}
	var refs []oci.Reference
	var registries []string
	for _, image := range c.Images {
		ref, err := flags.ParseReference(image)
		if err != nil {
			return err
		}
		refs, registries = append(refs, ref), append(registries, ref.Registry)
	}
	c.Keychain = c.WriteKeychain()
	client, err := c.Remote(env.Context, c.ImageLimits(), nil, registries...)
	if err != nil {
		return err
	}
	defer client.Close()
	for _, ref := range refs {
		image, err := client.Resolve(env.Context, ref)
		if err != nil {
			return err
		}
		if err := use(client, key, ref, image); err != nil {
			return err
		}
	}
	return nil
}

// isSigned reports whether an image has a signature by a key.
func isSigned(ctx context.Context, client *remote.Client, key *signing.Key, ref oci.Reference) (bool, error) {
	required, err := byKey(ctx, key.PublicPEM(), nil)
	if err != nil {
		return false, err
	}
	_, err = fetch.Examine(ctx, client, ref, []signature.Requirement{required})
	if errors.Is(err, signature.ErrNotSigned) || errors.Is(err, signature.ErrNotTrusted) {
		return false, nil
	}
	return err == nil, err
}

// byKey returns the requirement of a signature, and of attestations, by a public key in PEM.
func byKey(ctx context.Context, key []byte, attestations []string) (signature.Requirement, error) {
	authority := v1beta1.CosignAuthority{Name: "key", Key: &v1beta1.KeyReference{}, Attestations: wanted(attestations)}
	return signature.NewRequirement(
		ctx, "", &v1beta1.CosignVerification{Authorities: []v1beta1.CosignAuthority{authority}},
		func(context.Context, v1beta1.SecretKeySelector) ([]byte, error) { return key, nil },
	)
}

func wanted(types []string) []v1beta1.Attestation {
	var out []v1beta1.Attestation
	for _, t := range types {
		out = append(out, v1beta1.Attestation{Name: t, PredicateType: t})
	}
	return out
}

// AttestCmd implements `xpkg attest`.
type AttestCmd struct {
	SignCmd
	Predicate string `required:"" placeholder:"FILE" help:"Predicate (JSON), such as a bill of materials or a provenance; - is standard input."`
	Type      string `required:"" placeholder:"URI" requirement:"" help:"Type of the predicate: a URI, or spdxjson, cyclonedx, slsaprovenance1, vuln, openvex, link or custom."`
}

// Run adds a signed attestation to images.
func (c *AttestCmd) Run(env *terminal.Env) error {
	text, err := env.ReadInput(c.Predicate)
	if err != nil {
		return terminal.ErrUsage.New(err, "cannot read the predicate")
	}
	statement, err := c.statement(text)
	if err != nil {
		return err
	}
	return c.each(env, func(client *remote.Client, key *signing.Key, ref oci.Reference, image oci.Descriptor) error {
		if _, err := key.Attach(env.Context, client, ref, image, statement); err != nil {
			return err
		}
		_, err := fmt.Fprintf(env.Stdout, "%s has the attestation %s\n", ref.WithDigest(image.Digest), statement.PredicateType)
		return err
	})
}

// statement returns the attestation with a predicate.
func (c *AttestCmd) statement(text []byte) (signing.Statement, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil || object == nil {
		return signing.Statement{}, terminal.ErrUsage.New(err, "the predicate %s is no JSON object", c.Predicate).
			WithDo("Name a file with one JSON object in --predicate.")
	}
	kind := signature.PredicateType(c.Type)
	u, err := url.Parse(kind)
	switch {
	case err != nil || u.Scheme == "" || u.Host == "" || strings.ContainsAny(kind, " \t\n"):
		return signing.Statement{}, terminal.ErrUsage.New(err, "the type %q is neither a URI nor one of the short names", c.Type).
			WithDo("Use a type such as spdxjson, cyclonedx or https://slsa.dev/provenance/v1 for --type.")
	case kind == signature.SignPredicate:
		return signing.Statement{}, terminal.ErrUsage.New(nil, "%s is the type of signatures", kind).WithDo("Use `xpkg sign`.")
	}
	return signing.Statement{PredicateType: kind, Predicate: text}, nil
}
