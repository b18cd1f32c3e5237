package versions

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// ErrLockTag is the code for a tag that does not refer to the locked content.
var ErrLockTag = errcode.Code{
	Name: "LockTagMismatch", Class: errcode.Untrusted,
	Cause: "The tag of a package in the lock file does not refer to the locked digest: the tag was moved or deleted, or the file was edited.",
	Fix:   "Run `xpkg resolve` with --lock and --upgrade-package to lock the current content of the tag, and review the change.",
}

// TagResolver resolves tags to digests; a fetch.Source does.
type TagResolver interface {
	Resolve(ctx context.Context, o fetch.Origin, maxAge time.Duration) (oci.Digest, error)
}

// CheckTag fails with LockTagMismatch if the tag of a locked reference does not refer to its digest.
func CheckTag(ctx context.Context, content TagResolver, locate Locate, locked oci.Reference) error {
	change, err := tagChange(ctx, content, locate, locked)
	if err != nil || change == "" {
		return err
	}
	return ErrLockTag.New(nil, "%s, but %s is locked", change, locked.Digest.Short())
}

// tagChange describes the change of the tag of a reference since it was locked or installed, or returns "" if the tag
// refers to the digest of the reference.
func tagChange(ctx context.Context, content TagResolver, locate Locate, was oci.Reference) (string, error) {
	if was.Tag == "" || was.Digest.IsZero() {
		return "", nil
	}
	ref := was.WithTag(was.Tag)
	o, err := locate(ctx, ref)
	if err != nil {
		return "", err
	}
	now, err := content.Resolve(ctx, o, 0)
	switch {
	case errors.Is(err, remote.ErrTagNotFound), errors.Is(err, oci.ErrManifestNotFound):
		return fmt.Sprintf("the tag %s does not exist", ref), nil
	case err != nil:
		return "", err
	case now != was.Digest:
		return fmt.Sprintf("the tag %s refers to %s", ref, now.Short()), nil
	}
	return "", nil
}
