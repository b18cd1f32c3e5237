package mirror

import (
	"context"
	"errors"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// isIntact reports whether an artifact that is listed in the target, by its digest, is there with all of its content.
// Without verification, it is if it is listed.
func (m *mirror) isIntact(ctx context.Context, target oci.Reference, isListed bool) (bool, error) {
	if !m.Verify || !isListed {
		return isListed, nil
	}
	a, err := m.Client.Artifact(ctx, target)
	if err == nil {
		err = oci.Walk(ctx, a, m.Client.Limits(), func(ctx context.Context, d oci.Descriptor, raw []byte) error {
			if raw != nil {
				return nil // Its digest is verified.
			}
			return verifyBlob(ctx, a, d)
		})
	}
	if err == nil {
		return true, nil
	}
	switch errcode.From(err).Code.Class.Name {
	case errcode.NotFound.Name, errcode.Untrusted.Name, errcode.Invalid.Name:
		return false, nil
	}
	return false, err
}

// verifyBlob reads a blob, and compares it with its descriptor.
func verifyBlob(ctx context.Context, a oci.Artifact, d oci.Descriptor) error {
	r, err := a.Open(ctx, d)
	if err != nil {
		return err
	}
	found, size, err := oci.DigestReader(r)
	if closed := r.Close(); err == nil {
		err = closed
	}
	if err == nil && (found != d.Digest || size != d.Size) {
		err = oci.ErrDigestMismatch.New(nil, "the content of %s has the digest %s", d.Digest.Short(), found.Short())
	}
	return err
}

// push pushes an artifact to the target.
func (m *mirror) push(ctx context.Context, to oci.Reference, a oci.Artifact) error {
	if _, err := m.Client.Push(ctx, to, a); err != nil {
		return err
	}
	return m.checkPushed(ctx, to.WithDigest(a.Root().Digest))
}

// checkPushed fails if content that was pushed is still missing or damaged: registries keep a damaged blob which they
// have under its digest.
func (m *mirror) checkPushed(ctx context.Context, target oci.Reference) error {
	if !m.Verify {
		return m.checkServed(ctx, target)
	}
	isIntact, err := m.isIntact(ctx, target, true)
	if err != nil || isIntact {
		return err
	}
	return oci.ErrDigestMismatch.New(nil, "%s keeps damaged content of %s", target.Registry, target).
		WithDo(
			"Delete the content there with its blobs, such as by the garbage collection of the registry, and run the command again.",
		)
}

// checkServed fails if the target does not serve a manifest that it has accepted. The manifest is the last file of an
// artifact that is written, so that it is the one that a full disk damages unless the push failed.
func (m *mirror) checkServed(ctx context.Context, target oci.Reference) error {
	err := m.Client.Exists(ctx, target)
	if err == nil || ctx.Err() != nil || errors.Is(err, remote.ErrThrottled) ||
		errcode.From(err).Code.Class == errcode.Unauthorized {
		return ctx.Err()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.damaged = append(m.damaged, target.Name()+"@"+target.Digest.String())
	return ErrDamaged.New(err, "the mirror does not serve %s", target.Digest)
}
