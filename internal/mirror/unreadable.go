package mirror

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"

	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// ErrUnreadable is the code for packages that the source does not have, that are damaged there, that the user may not
// read, or whose content cannot be copied.
var ErrUnreadable = errcode.Code{
	Name: "MirrorUnreadable", Class: errcode.NotFound,
	Cause: "Versions of packages of the index, or artifacts that belong to them, do not exist in the source, are damaged there, the user may not read them, they exceed a limit, or the mirror rejects them. Everything else was copied, and the index.",
	Fix:   "Log in with `xpkg login` as a user who may read the packages, push damaged content again to the source, or remove packages that do not exist any more from the index: `xpkg index update` omits versions, and `xpkg index build` packages. Then run the command again.",
}

// ErrDamaged is the code for a mirror that accepts content and does not serve it.
var ErrDamaged = errcode.Code{
	Name: "MirrorDamaged", Class: errcode.Unavailable,
	Cause: "The mirror has accepted content that it does not serve: its storage has a damaged file under the digest, such as an empty one since its disk was full. Everything else was copied, and the index.",
	Fix:   "In the mirror, delete each manifest in the message by its digest, collect the garbage, and restart it. Then run the command again.",
}

// A readError is the failure of a request to the source for something that does not exist there, that is damaged, or
// that the user may not read.
type readError struct{ error }

// Unwrap returns the cause.
func (e readError) Unwrap() error { return e.error }

// fromSource marks the error of a request to the source as a readError if it is one.
func fromSource(err error) error {
	if err == nil {
		return nil
	}
	switch errcode.From(err).Code.Class {
	case errcode.NotFound, errcode.Unauthorized:
		return readError{err}
	}
	for _, damaged := range []errcode.Code{oci.ErrDigestMismatch, oci.ErrSizeMismatch, oci.ErrInvalidManifest} {
		if errors.Is(err, damaged) {
			return readError{err}
		}
	}
	// A server of xpkg refuses a repository whose files are damaged, and serves all others.
	if remote.ResponseCode(err) == remote.CodeDamaged {
		return readError{err}
	}
	return err
}

// sourceReader verifies content of the source, and marks its errors.
type sourceReader struct {
	io.Closer
	verified io.Reader
}

// Read implements [io.Reader].
func (r sourceReader) Read(p []byte) (int, error) {
	n, err := r.verified.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // Readers return io.EOF itself.
		err = fromSource(err)
	}
	return n, err
}

// sourceArtifact is an artifact of the source.
type sourceArtifact struct{ oci.Artifact }

// Open implements [oci.Artifact].
func (a sourceArtifact) Open(ctx context.Context, d oci.Descriptor) (io.ReadCloser, error) {
	r, err := a.Artifact.Open(ctx, d)
	if err != nil {
		return nil, fromSource(err)
	}
	return sourceReader{r, oci.VerifyReader(r, d)}, nil
}

// artifact returns an artifact of the source.
func (m *mirror) artifact(ctx context.Context, from oci.Reference) (oci.Artifact, error) {
	a, err := m.Client.Artifact(ctx, from)
	if err != nil {
		return nil, fromSource(err)
	}
	return sourceArtifact{a}, nil
}

// unreadable is something that cannot be copied because of its content, because the source does not have it, or because
// the user may not read it. The tag is empty for the whole repository.
type unreadable struct {
	repository, tag string
	err             error
}

// pass notes an error that concerns only content of a repository and returns nil, so that the run continues: a
// publisher must not be able to stop the mirror of all other packages. It returns other errors.
func (m *mirror) pass(r repository, tag string, err error) error {
	if !isOfContent(err) {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unreadable = append(m.unreadable, unreadable{r.Repository, tag, err})
	return nil
}

// isOfContent reports whether an error is a readError, or another one that other content does not have: the content is
// not valid, exceeds a limit, or the target rejects it.
func isOfContent(err error) bool {
	var read readError
	return errors.As(err, &read) || errors.Is(err, ErrDamaged) || errcode.IsOfContent(err)
}

// isRead reports whether everything of a repository could be read.
func (m *mirror) isRead(r repository) bool {
	return !slices.ContainsFunc(m.unreadable, func(u unreadable) bool { return u.repository == r.Repository })
}

// errIncomplete returns the error for everything that could not be copied because of its content; nil if there is
// nothing.
func (m *mirror) errIncomplete() error {
	if len(m.damaged) == 0 {
		return m.errUnreadable()
	}
	slices.Sort(m.damaged)
	const most = 200
	m.unreadable = slices.DeleteFunc(m.unreadable, func(u unreadable) bool { return errors.Is(u.err, ErrDamaged) })
	return errors.Join(ErrDamaged.New(
		nil, "the mirror does not serve %s that it has accepted: %s", wording.Count(len(m.damaged), "manifest"),
		wording.Few(m.damaged, most, ", "),
	), m.errUnreadable())
}

// errUnreadable returns the error for everything that could not be read; nil if there is nothing.
func (m *mirror) errUnreadable() error {
	if len(m.unreadable) == 0 {
		return nil
	}
	slices.SortFunc(m.unreadable, func(a, b unreadable) int {
		return cmp.Or(cmp.Compare(a.repository, b.repository), cmp.Compare(a.tag, b.tag))
	})
	var packages []string
	for i := 0; i < len(m.unreadable); {
		first := m.unreadable[i]
		var tags []string
		for ; i < len(m.unreadable) && m.unreadable[i].repository == first.repository; i++ {
			tags = append(tags, m.unreadable[i].tag)
		}
		name := first.repository
		if tags = slices.Compact(tags); first.tag != "" {
			name += ":" + wording.Few(tags, 3, ", ")
		}
		packages = append(packages, name+" ("+first.err.Error()+")")
	}
	const most = 10
	return ErrUnreadable.New(
		nil, "cannot copy %s: %s", wording.Count(len(packages), "package"), wording.Few(packages, most, "; "),
	)
}
