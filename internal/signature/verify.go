package signature

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// SignPredicate is the type of the predicate of a signature that is a bundle, as of cosign 3.
const SignPredicate = "https://sigstore.dev/cosign/sign/v1"

// Item is a signature or an attestation, as it is kept beside an image. It is a claim.
type Item struct {
	// Bundle is a Sigstore bundle. The others are empty then.
	Bundle json.RawMessage `json:"bundle,omitempty"`
	// Payload is what is signed, or the envelope of an attestation, under a tag of cosign.
	Payload []byte `json:"payload,omitempty"`
	// IsAttestation reports that Payload is an envelope.
	IsAttestation bool `json:"isAttestation,omitempty"`
	// Annotations have the signature and its proofs.
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Evidence is what is kept beside an image.
type Evidence []Item

// Compact returns the first items of at most a number of bytes, each once.
func (e Evidence) Compact(limit int) Evidence {
	var out Evidence
	for _, item := range e {
		size := len(item.Bundle) + len(item.Payload)
		for k, v := range item.Annotations {
			size += len(k) + len(v)
		}
		if limit -= size; limit < 0 {
			break
		}
		if !slices.ContainsFunc(out, func(o Item) bool { return reflect.DeepEqual(o, item) }) {
			out = append(out, item)
		}
	}
	return out
}

// Verdict states who has signed an image.
type Verdict struct {
	// Config is the name of the ImageConfig that requires the signature.
	Config string `json:"config"`
	// Authority is the name of the authority that has signed.
	Authority string `json:"authority"`
	// Signer is the subject and the issuer of a certificate, or the digest of a key.
	Signer string `json:"signer"`
	// Attestations are the types of the predicates of the attestations that are required.
	Attestations []string `json:"attestations,omitempty"`
}

// Verify returns who has signed the image with a digest, and the items that prove it. It fails with ErrNotSigned or
// ErrNotTrusted, and names the image.
func (r Requirement) Verify(image string, d oci.Digest, e Evidence) (Verdict, Evidence, error) {
	code, reasons := ErrNotSigned, []string(nil)
	for _, a := range r.authorities {
		verdict, proof, err := a.verify(d, e)
		if err == nil {
			verdict.Config = r.Config
			return verdict, proof, nil
		}
		if !errors.Is(err, errAbsent) {
			code = ErrNotTrusted
		}
		reasons = append(reasons, fmt.Sprintf("the authority %q: %v", a.name, err))
	}
	why := strings.Join(reasons, "; ")
	if r.Config == "" {
		return Verdict{}, nil, code.New(nil, "no trusted signature of %s was found: %s", image, why).
			WithDo("Check who has signed the image, and whether the signatures were copied with it.")
	}
	return Verdict{}, nil, code.New(nil, "the ImageConfig %s requires a signature of %s: %s", r.Config, image, why)
}

// errAbsent is the cause of a failure without evidence.
var errAbsent = errors.New("no evidence")

// verify returns the verdict of one authority: its signature, and each of its attestations.
func (a authority) verify(d oci.Digest, e Evidence) (Verdict, Evidence, error) {
	proofs := map[string]*proof{}
	wanted := append([]string{SignPredicate}, a.attestations...)
	failures := map[string][]error{}
	for _, item := range e {
		made, claims, err := a.check(d, item, wanted)
		switch {
		case err != nil:
			failures[claims] = append(failures[claims], err)
		case made != nil && proofs[made.predicate] == nil:
			proofs[made.predicate] = made
		}
	}
	out := Verdict{Authority: a.name, Attestations: a.attestations}
	var used Evidence
	for _, w := range wanted {
		what := "a signature"
		if w != SignPredicate {
			what = "the attestation " + w
		}
		made := proofs[w]
		switch failed := append(slices.Clone(failures[w]), failures[""]...); {
		case made != nil:
			if w == SignPredicate {
				out.Signer = made.signer
			}
			used = append(used, made.item)
		case len(failed) == 0:
			return Verdict{}, nil, fmt.Errorf("%s is missing%w", what, quiet{errAbsent})
		case len(failed) == 1:
			return Verdict{}, nil, fmt.Errorf("%s is not accepted: %w", what, failed[0])
		default:
			return Verdict{}, nil, fmt.Errorf("none of %d is accepted as %s: the first: %w", len(failed), what, failed[0])
		}
	}
	return out, used, nil
}

// quiet is an error without a text.
type quiet struct{ error }

func (quiet) Error() string   { return "" }
func (q quiet) Unwrap() error { return q.error }

// proof is an item that an authority has made.
type proof struct {
	// predicate is the type of the predicate, SignPredicate for a signature.
	predicate, signer string
	item              Item
}

// check verifies that an authority has made an item for a digest. Claims is the type of the predicate that the item
// claims, and "" if it cannot be read. It ignores items of other types than the wanted ones.
func (a authority) check(d oci.Digest, item Item, wanted []string) (made *proof, claims string, err error) {
	entity, artifact, claims, err := item.entity(d)
	if err != nil || !slices.Contains(wanted, claims) {
		return nil, claims, err
	}
	if a.key != nil && item.Bundle == nil && !item.IsAttestation {
		// Tags of cosign keep signatures of payloads, which need no proof of time with a key.
		if err := a.key.VerifySignature(bytes.NewReader(item.signature()), bytes.NewReader(item.Payload)); err != nil {
			return nil, claims, errors.New("it is not made with the key " + a.keyID)
		}
		return &proof{SignPredicate, a.keyID, item}, claims, nil
	}
	result, err := a.verifyEntity(entity, artifact)
	if err != nil {
		return nil, claims, err
	}
	made = &proof{predicate: SignPredicate, signer: a.keyID, item: item}
	if result.Statement != nil {
		made.predicate = result.Statement.GetPredicateType()
	}
	if c := result.Signature.Certificate; c != nil {
		made.signer = c.SubjectAlternativeName + " (" + c.Issuer + ")"
	}
	return made, claims, nil
}

// verifyEntity verifies a bundle of an artifact.
func (a authority) verifyEntity(
	entity verify.SignedEntity, artifact verify.ArtifactPolicyOption,
) (*verify.VerificationResult, error) {
	material, options := a.root, append([]verify.VerifierOption{verify.WithoutStatementPredicate()}, a.options...)
	var policy []verify.PolicyOption
	if a.key != nil {
		key := root.NewExpiringKey(a.key, time.Time{}, time.Time{})
		material = root.NewTrustedPublicKeyMaterial(func(string) (root.TimeConstrainedVerifier, error) { return key, nil })
		options = append(options, verify.WithNoObserverTimestamps())
		policy = append(policy, verify.WithKey())
	}
	for _, i := range a.identities {
		policy = append(policy, verify.WithCertificateIdentity(i))
	}
	verifier, err := verify.NewVerifier(material, options...)
	if err != nil {
		return nil, err
	}
	result, err := verifier.Verify(entity, verify.NewPolicy(artifact, policy...))
	if err == nil && a.key == nil && result.VerifiedIdentity == nil {
		err = errors.New("no identity was verified") // The library verifies one: this never happens.
	}
	return result, err
}

// VerifyAll returns the verdicts of several requirements, all of which an image must meet, and the items that prove
// them.
func VerifyAll(all []Requirement, image string, d oci.Digest, e Evidence) ([]Verdict, Evidence, error) {
	var verdicts []Verdict
	var used Evidence
	for _, r := range all {
		verdict, proof, err := r.Verify(image, d, e)
		if err != nil {
			return nil, nil, err
		}
		verdicts, used = append(verdicts, verdict), append(used, proof...)
	}
	return verdicts, used, nil
}

// Signers returns the signers of verdicts in order, each once.
func Signers(all []Verdict) []string {
	var out []string
	for _, v := range all {
		out = append(out, v.Signer)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Fingerprint identifies requirements with the content of their Secrets.
func Fingerprint(all []Requirement) string {
	out := ""
	for _, r := range all {
		out += r.fingerprint
	}
	return out
}
