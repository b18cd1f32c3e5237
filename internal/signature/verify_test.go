package signature_test

import (
	"context"
	"crypto"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/signature"
	"github.com/xpkg-dev/xpkg/internal/testing/signing"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

const (
	jane    = "https://ci.example.org/acme/release"
	issuer  = "https://ci.example.org"
	slsa    = "https://slsa.dev/provenance/v1"
	sbom    = "https://spdx.dev/Document"
	secrets = "signers"
)

var image, other = oci.DigestOf([]byte("image")), oci.DigestOf([]byte("another image"))

// values are the values of the Secret with the name signers.
type values map[string][]byte

func (v values) read(_ context.Context, s v1beta1.SecretKeySelector) ([]byte, error) {
	if data, ok := v[s.Key]; ok && s.Name == secrets {
		return data, nil
	}
	return nil, signature.ErrTrust.New(nil, "there is no value %s", s.Key)
}

func (v values) requirement(t testing.TB, c *v1beta1.CosignVerification) signature.Requirement {
	t.Helper()
	r, err := signature.NewRequirement(t.Context(), "signed", c, v.read)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func selector(key string) v1beta1.SecretKeySelector {
	return v1beta1.SecretKeySelector{Name: secrets, Key: key}
}

func byKey(key string, attestations ...string) v1beta1.CosignAuthority {
	return v1beta1.CosignAuthority{
		Name: key, Key: &v1beta1.KeyReference{SecretRef: selector(key)}, Attestations: predicates(attestations),
	}
}

func byIdentity(i v1beta1.Identity, attestations ...string) v1beta1.CosignAuthority {
	return v1beta1.CosignAuthority{Name: "identity", Attestations: predicates(attestations), Keyless: &v1beta1.KeylessReference{
		Identities: []v1beta1.Identity{i}, InsecureIgnoreSCT: new(true),
	}}
}

func predicates(types []string) []v1beta1.Attestation {
	var out []v1beta1.Attestation
	for _, t := range types {
		out = append(out, v1beta1.Attestation{Name: t, PredicateType: t})
	}
	return out
}

func authorities(all ...v1beta1.CosignAuthority) *v1beta1.CosignVerification {
	return &v1beta1.CosignVerification{Authorities: all}
}

func withRoot(all ...v1beta1.CosignAuthority) *v1beta1.CosignVerification {
	c := authorities(all...)
	c.TrustedRoot = &v1beta1.TrustedRootReference{SecretRef: selector("root")}
	return c
}

func bundle(raw []byte) signature.Item { return signature.Item{Bundle: raw} }

func tagged(payload []byte, annotations map[string]string) signature.Item {
	return signature.Item{Payload: payload, Annotations: annotations}
}

func attached(envelope []byte) signature.Item {
	return signature.Item{Payload: envelope, IsAttestation: true, Annotations: map[string]string{}}
}

// Each kind of key signs in each scheme, and only for its image and with its hash.
//
// hardening: G5
func TestKeys(t *testing.T) {
	for _, kind := range []string{"p256", "p384", "ed25519", "rsa"} {
		for name, hash := range map[string]crypto.Hash{"sha256": crypto.SHA256, "sha384": crypto.SHA384, "sha512": crypto.SHA512} {
			key, stranger := signing.NewKey(t, kind, hash), signing.NewKey(t, kind, hash)
			authority := byKey("release", "spdxjson")
			authority.Key.HashAlgorithm = name
			r := values{"release": key.PEM(t)}.requirement(t, authorities(authority))
			for scheme, made := range map[string]func(k *signing.Key, d oci.Digest, predicate string) signature.Item{
				"bundle": func(k *signing.Key, d oci.Digest, p string) signature.Item {
					return bundle(k.Bundle(t, signing.Statement(d, p)))
				},
				"tag": func(k *signing.Key, d oci.Digest, p string) signature.Item {
					if p == signing.Sign {
						return tagged(signing.Payload(d), k.Tagged(t, signing.Payload(d)))
					}
					return attached(k.Envelope(t, signing.Statement(d, p)))
				},
			} {
				sign, attest := made(key, image, signing.Sign), made(key, image, sbom)
				got, proof, err := r.Verify("acme/x", image, signature.Evidence{made(stranger, image, signing.Sign), sign, attest})
				if err != nil || got.Config != "signed" || got.Authority != "release" || len(proof) != 2 ||
					!strings.HasPrefix(got.Signer, "sha256:") || len(got.Attestations) != 1 || got.Attestations[0] != sbom {
					t.Errorf("%s, %s, %s: %+v, %d proofs, %v", kind, name, scheme, got, len(proof), err)
				}
				if _, _, err := r.Verify("acme/x", image, proof); err != nil {
					t.Errorf("%s, %s, %s: the proof alone: %v", kind, name, scheme, err)
				}
				for what, tc := range map[string]struct {
					evidence signature.Evidence
					want     error
				}{
					"nothing":                       {nil, signature.ErrNotSigned},
					"no attestation":                {signature.Evidence{sign}, signature.ErrNotSigned},
					"an attestation alone":          {signature.Evidence{attest}, signature.ErrNotSigned},
					"another attestation":           {signature.Evidence{sign, made(key, image, slsa)}, signature.ErrNotSigned},
					"the attestation of a stranger": {signature.Evidence{sign, made(stranger, image, sbom)}, signature.ErrNotTrusted},
					"the attestation of another":    {signature.Evidence{sign, made(key, other, sbom)}, signature.ErrNotTrusted},
					"the signature of a stranger":   {signature.Evidence{made(stranger, image, signing.Sign), attest}, signature.ErrNotTrusted},
					"the signature of another":      {signature.Evidence{made(key, other, signing.Sign), attest}, signature.ErrNotTrusted},
				} {
					if _, _, err := r.Verify("acme/x", image, tc.evidence); !errors.Is(err, tc.want) {
						t.Errorf("%s, %s, %s, %s: %v, want %v", kind, name, scheme, what, err, tc.want)
					}
				}
			}
		}
	}
}

// An identity signs in each scheme, with the trust root of an own instance, with or without a transparency log.
//
// hardening: G2
func TestIdentities(t *testing.T) {
	instance, evil := signing.NewSigstore(t), signing.NewSigstore(t)
	exact := v1beta1.Identity{Issuer: issuer, Subject: jane}
	schemes := func(s *signing.Sigstore, identity, issuer string, d oci.Digest) map[string]signature.Item {
		return map[string]signature.Item{
			"bundle": bundle(s.Bundle(t, identity, issuer, signing.Statement(d, signing.Sign))),
			"tag":    tagged(signing.Payload(d), s.Tagged(t, identity, issuer, signing.Payload(d))),
		}
	}
	for _, log := range []bool{true, false} {
		v := values{"root": instance.Root(t, log)}
		for scheme, item := range schemes(instance, jane, issuer, image) {
			got, _, err := v.requirement(t, withRoot(byIdentity(exact))).Verify("acme/x", image, signature.Evidence{item})
			if want := jane + " (" + issuer + ")"; err != nil || got.Signer != want {
				t.Errorf("log %t, %s: signed by %q, want %q: %v", log, scheme, got.Signer, want, err)
			}
			if _, _, err := v.requirement(t, withRoot(byIdentity(exact))).
				Verify("acme/x", other, signature.Evidence{item}); !errors.Is(err, signature.ErrNotTrusted) {
				t.Errorf("log %t, %s: another image: %v", log, scheme, err)
			}
			// The public instance did not certify it, and no certificate has a proof of its log.
			for name, c := range map[string]*v1beta1.CosignVerification{
				"public root": authorities(byIdentity(exact)), "certificate log": func() *v1beta1.CosignVerification {
					c := withRoot(byIdentity(exact))
					c.Authorities[0].Keyless.InsecureIgnoreSCT = nil
					return c
				}(),
			} {
				if _, _, err := v.requirement(t, c).Verify("acme/x", image, signature.Evidence{item}); !errors.Is(err, signature.ErrNotTrusted) {
					t.Errorf("log %t, %s, %s: %v", log, scheme, name, err)
				}
			}
		}
		for scheme, item := range schemes(evil, jane, issuer, image) {
			if _, _, err := v.requirement(t, withRoot(byIdentity(exact))).
				Verify("acme/x", image, signature.Evidence{item}); !errors.Is(err, signature.ErrNotTrusted) {
				t.Errorf("log %t, %s of another instance: %v", log, scheme, err)
			}
		}
	}
	v := values{"root": instance.Root(t, true)}
	for name, tc := range map[string]struct {
		want            v1beta1.Identity
		subject, issuer string
		trusted         bool
	}{
		"patterns":                 {v1beta1.Identity{IssuerRegExp: `https://ci\..*`, SubjectRegExp: ".*/acme/.*"}, jane, issuer, true},
		"a pattern over a string":  {v1beta1.Identity{Issuer: "x", IssuerRegExp: ".*", Subject: jane}, jane, issuer, true},
		"another subject":          {exact, "https://ci.example.org/acme/test", issuer, false},
		"another issuer":           {exact, jane, "https://ci.example.com", false},
		"a part of the subject":    {v1beta1.Identity{Issuer: issuer, SubjectRegExp: "https://ci.example.org/acme/"}, jane, issuer, false},
		"a part of the issuer":     {v1beta1.Identity{IssuerRegExp: "ci.example.org", Subject: jane}, jane, issuer, false},
		"a choice in the pattern":  {v1beta1.Identity{Issuer: issuer, SubjectRegExp: "x|https://ci"}, jane, issuer, false},
		"a longer subject":         {exact, jane + "x", issuer, false},
		"a subject with a newline": {v1beta1.Identity{Issuer: issuer, SubjectRegExp: "https://ci.*"}, "https://ci/%0aevil", issuer, true},
	} {
		item := bundle(instance.Bundle(t, tc.subject, tc.issuer, signing.Statement(image, signing.Sign)))
		_, _, err := v.requirement(t, withRoot(byIdentity(tc.want))).Verify("acme/x", image, signature.Evidence{item})
		if tc.trusted && err != nil || !tc.trusted && !errors.Is(err, signature.ErrNotTrusted) {
			t.Errorf("%s: %v, want trust %t", name, err, tc.trusted)
		}
	}
}

// One of the authorities is enough, and it makes all that is required of it by itself.
func TestAuthorities(t *testing.T) {
	a, b := signing.NewKey(t, "p256", crypto.SHA256), signing.NewKey(t, "ed25519", crypto.SHA256)
	v := values{"a": a.PEM(t), "b": b.PEM(t)}
	signed := func(k *signing.Key, p string) signature.Item { return bundle(k.Bundle(t, signing.Statement(image, p))) }
	r := v.requirement(t, authorities(byKey("a", "slsaprovenance1", "spdx"), byKey("b")))
	for name, tc := range map[string]struct {
		evidence signature.Evidence
		want     string
	}{
		"a":            {signature.Evidence{signed(a, signing.Sign), signed(a, slsa), signed(a, sbom)}, "a"},
		"b":            {signature.Evidence{signed(b, signing.Sign)}, "b"},
		"half of each": {signature.Evidence{signed(a, signing.Sign), signed(a, slsa), signed(b, sbom)}, ""},
	} {
		got, _, err := r.Verify("acme/x", image, tc.evidence)
		if got.Authority != tc.want || (err == nil) != (tc.want != "") {
			t.Errorf("%s: by %q, %v, want %q", name, got.Authority, err, tc.want)
		}
	}
	// Several requirements are all required.
	both := []signature.Requirement{
		v.requirement(t, authorities(byKey("a"))), v.requirement(t, authorities(byKey("b"))),
	}
	if _, _, err := signature.VerifyAll(both, "acme/x", image, signature.Evidence{signed(a, signing.Sign)}); err == nil {
		t.Error("one of two requirements is enough")
	}
	if got, proof, err := signature.VerifyAll(
		both, "acme/x", image, signature.Evidence{signed(a, signing.Sign), signed(b, signing.Sign)},
	); err != nil || len(got) != 2 || len(proof) != 2 {
		t.Errorf("%v, %d proofs, %v", got, len(proof), err)
	}
}

// What is malformed, or has the signature of something else, is refused for its reason and hides nothing valid.
//
// hardening: G4, G7
func TestMalformedEvidence(t *testing.T) {
	key, instance := signing.NewKey(t, "p256", crypto.SHA256), signing.NewSigstore(t)
	v := values{"release": key.PEM(t), "root": instance.Root(t, true)}
	r := v.requirement(t, withRoot(byKey("release"), byIdentity(v1beta1.Identity{Issuer: issuer, Subject: jane})))
	good := key.Bundle(t, signing.Statement(image, signing.Sign))
	change := func(f func(b map[string]any)) signature.Item {
		var b map[string]any
		if err := json.Unmarshal(good, &b); err != nil {
			t.Fatal(err)
		}
		f(b)
		out, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		return bundle(out)
	}
	envelope := func(b map[string]any) map[string]any { return b["dsseEnvelope"].(map[string]any) }
	payload := signing.Payload(image)
	cases := map[string]signature.Item{
		"no JSON": bundle([]byte("{")), "an empty bundle": bundle([]byte("{}")),
		"two signatures": change(func(b map[string]any) {
			all := envelope(b)["signatures"].([]any)
			envelope(b)["signatures"] = append(all, all[0])
		}),
		"no signature":     change(func(b map[string]any) { envelope(b)["signatures"] = []any{} }),
		"another payload":  change(func(b map[string]any) { envelope(b)["payload"] = append(signing.Statement(image, signing.Sign), ' ') }),
		"another type":     change(func(b map[string]any) { envelope(b)["payloadType"] = "text/plain" }),
		"an unknown field": change(func(b map[string]any) { b["trustMe"] = true }),
		"a new version":    change(func(b map[string]any) { b["mediaType"] = "application/vnd.dev.sigstore.bundle.v0.9+json" }),
		"no material":      change(func(b map[string]any) { delete(b, "verificationMaterial") }),
		"a statement without a subject": bundle(key.Bundle(t, []byte(
			`{"_type":"https://in-toto.io/Statement/v1","subject":[],"predicateType":"`+signing.Sign+`","predicate":{}}`,
		))),
		"a payload of another type": tagged([]byte(strings.Replace(string(payload), "container", "other", 1)), key.Tagged(t, payload)),
		"a payload that is no JSON": tagged([]byte("x"), key.Tagged(t, []byte("x"))),
		"an attestation as a signature": tagged(
			key.Envelope(t, signing.Statement(image, signing.Sign)), key.Tagged(t, payload),
		),
		"a damaged signature":   tagged(payload, map[string]string{"dev.cosignproject.cosign/signature": "AAAA"}),
		"a certificate alone":   tagged(payload, without(instance.Tagged(t, jane, issuer, payload), "bundle", "rfc3161timestamp")),
		"a damaged certificate": tagged(payload, with(instance.Tagged(t, jane, issuer, payload), "certificate", "x")),
		"a damaged log entry":   tagged(payload, with(instance.Tagged(t, jane, issuer, payload), "bundle", "{}")),
		"a log entry of another": tagged(payload, with(
			instance.Tagged(t, jane, issuer, payload), "bundle",
			instance.Tagged(t, jane, issuer, signing.Payload(other))["dev.sigstore.cosign/bundle"],
		)),
		"no log entry": tagged(payload, without(instance.Tagged(t, jane, issuer, payload), "bundle")),
	}
	for name, item := range cases {
		_, _, err := r.Verify("acme/x", image, signature.Evidence{item})
		if !errors.Is(err, signature.ErrNotTrusted) {
			t.Errorf("%s: %v, want %v", name, err, signature.ErrNotTrusted)
		}
		if _, proof, err := r.Verify("acme/x", image, signature.Evidence{item, bundle(good)}); err != nil || len(proof) != 1 {
			t.Errorf("%s hides a valid signature: %v", name, err)
		}
	}
}

func with(annotations map[string]string, name, value string) map[string]string {
	annotations["dev.sigstore.cosign/"+name] = value
	return annotations
}

func without(annotations map[string]string, names ...string) map[string]string {
	for _, n := range names {
		delete(annotations, "dev.sigstore.cosign/"+n)
	}
	return annotations
}

// Keys and trust roots that cannot be read are errors that name the Secret.
func TestSecrets(t *testing.T) {
	v := values{"bad": []byte("x"), "key": signing.NewKey(t, "p256", crypto.SHA256).PEM(t)}
	rooted := authorities(byKey("key"))
	rooted.TrustedRoot = &v1beta1.TrustedRootReference{SecretRef: selector("bad")}
	for name, c := range map[string]*v1beta1.CosignVerification{
		"a missing value": authorities(byKey("none")), "no key": authorities(byKey("bad")), "no trust root": rooted,
	} {
		_, err := signature.NewRequirement(t.Context(), "signed", c, v.read)
		if !errors.Is(err, signature.ErrTrust) || !strings.Contains(fmt.Sprint(err), "signed") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzVerify proves that no evidence makes the verification fail otherwise than with a refusal, or succeed.
func FuzzVerify(f *testing.F) {
	key := signing.NewKey(f, "p256", crypto.SHA256)
	instance := signing.NewSigstore(f)
	v := values{"release": key.PEM(f), "root": instance.Root(f, true)}
	r, err := signature.NewRequirement(
		context.Background(), "signed", withRoot(byKey("release"), byIdentity(v1beta1.Identity{Issuer: issuer, Subject: jane})),
		v.read,
	)
	if err != nil {
		f.Fatal(err)
	}
	annotations, err := json.Marshal(instance.Tagged(f, jane, issuer, signing.Payload(other)))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(key.Bundle(f, signing.Statement(other, signing.Sign)), signing.Payload(other), string(annotations), false)
	f.Add(instance.Bundle(f, jane, issuer, signing.Statement(other, slsa)), key.Envelope(f, signing.Statement(other, slsa)), "{}", true)
	f.Fuzz(func(t *testing.T, bundle, payload []byte, annotations string, isAttestation bool) {
		item := signature.Item{Payload: payload, IsAttestation: isAttestation}
		if json.Unmarshal([]byte(annotations), &item.Annotations) != nil {
			item.Annotations = nil
		}
		_, _, err := r.Verify("acme/x", image, signature.Evidence{{Bundle: bundle}, item})
		if !errors.Is(err, signature.ErrNotSigned) && !errors.Is(err, signature.ErrNotTrusted) {
			t.Errorf("%v", err)
		}
	})
}
