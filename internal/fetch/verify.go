package fetch

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/xpkg-dev/xpkg/internal/signature"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// evidenceKey returns the key of the signatures and attestations by which content was verified.
func evidenceKey(d oci.Digest) store.DerivedKey {
	return store.DerivedKey{Digest: d, Name: "evidence", Version: 1}
}

// verdicts are the verdicts of this process, by digest and requirements. They never become wrong: evidence is not
// withdrawn.
type verdicts struct {
	mu    sync.Mutex
	known map[verdictKey][]signature.Verdict
}

type verdictKey struct {
	digest       oci.Digest
	requirements string
}

// maxVerdicts bounds the verdicts in memory.
const maxVerdicts = 4096

// maxEvidence bounds the evidence that is kept for one content, in bytes. What has proven something comes first.
const maxEvidence = 1 << 20

// Verify returns who has signed the content with a digest, if the origin requires signatures. Evidence that was
// accepted before is kept beside the content and judged again, so that verified content needs no registry. Without ask,
// no registry is accessed. It fails as [signature.VerifyAll] does, and with
// [signature.ErrUnknown] if the signatures cannot be read.
func (s *Source) Verify(ctx context.Context, o Origin, d oci.Digest, ask bool) ([]signature.Verdict, error) {
	if o.Signed == nil {
		return nil, nil
	}
	required, err := o.Signed(ctx)
	if err != nil || len(required) == 0 {
		return nil, err
	}
	key := verdictKey{d, signature.Fingerprint(required)}
	if known, ok := s.verdicts.get(key); ok {
		return known, nil
	}
	var kept signature.Evidence
	if raw, err := s.opts.Store.GetDerived(ctx, evidenceKey(d)); err == nil {
		_ = json.Unmarshal(raw, &kept) // Damaged evidence is none.
	}
	verdict, _, err := signature.VerifyAll(required, o.at(d), d, kept)
	switch {
	case err == nil:
		s.verdicts.put(key, verdict)
		return verdict, nil
	case !ask:
		return nil, signature.ErrUnknown.New(err, "the package cache has no signature of %s that is sufficient", o.at(d)).
			WithDo("Use the packagePullPolicy IfNotPresent, with which the signature is read from the registry.")
	}
	verdict, proof, all, err := s.examine(ctx, o, d, required)
	if err != nil {
		return nil, err
	}
	s.verdicts.put(key, verdict)
	if raw, err := json.Marshal(slices.Concat(proof, all, kept).Compact(maxEvidence)); err == nil {
		_ = s.opts.Store.PutDerived(ctx, evidenceKey(d), raw) // Without a writable store, it is read again.
	}
	return verdict, nil
}

// Examine is like Verify, but judges only what the registry has now.
func (s *Source) Examine(ctx context.Context, o Origin, d oci.Digest) ([]signature.Verdict, error) {
	if o.Signed == nil {
		return nil, nil
	}
	required, err := o.Signed(ctx)
	if err != nil {
		return nil, err
	}
	verdict, _, _, err := s.examine(ctx, o, d, required)
	return verdict, err
}

// examine returns who has signed a content, the evidence that proves it, and all evidence, from the first location that
// tells.
func (s *Source) examine(
	ctx context.Context, o Origin, d oci.Digest, required []signature.Requirement,
) (verdict []signature.Verdict, proof, all signature.Evidence, err error) {
	_, err = first(ctx, o, func(p Endpoint) (struct{}, error) {
		c, err := s.clients.get(ctx, p)
		if err != nil {
			return struct{}{}, err
		}
		verdict, proof, all, err = judge(ctx, c.remote, p.Ref.WithDigest(d), o.at(d), required)
		return struct{}{}, err
	})
	return verdict, proof, all, err
}

// judge returns who has signed the image with the digest of a reference, the evidence that proves it, and all evidence.
// Name is the name of the image in errors.
func judge(
	ctx context.Context, client *remote.Client, ref oci.Reference, name string, required []signature.Requirement,
) (verdict []signature.Verdict, proof, all signature.Evidence, err error) {
	err = collect(ctx, client, ref, func(e signature.Evidence) (err error) {
		all = e
		verdict, proof, err = signature.VerifyAll(required, name, ref.Digest, e)
		return err
	})
	return verdict, proof, all, err
}

// Examine returns who has signed the image with the digest of a reference, judging what its repository has. It fails as
// [Source.Verify] does.
func Examine(
	ctx context.Context, client *remote.Client, ref oci.Reference, required []signature.Requirement,
) (verdict []signature.Verdict, err error) {
	verdict, _, _, err = judge(ctx, client, ref, ref.WithTag("").String(), required)
	return verdict, err
}

func (v *verdicts) get(key verdictKey) ([]signature.Verdict, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	known, ok := v.known[key]
	return known, ok
}

func (v *verdicts) put(key verdictKey, verdict []signature.Verdict) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.known == nil || len(v.known) >= maxVerdicts {
		v.known = map[verdictKey][]signature.Verdict{}
	}
	v.known[key] = verdict
}
