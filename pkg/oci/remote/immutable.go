package remote

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// ErrImmutable is the code for a version that is published again with other content.
var ErrImmutable = errcode.Code{
	Name: "ImmutableVersion", Class: errcode.Conflict,
	Cause: "A version is published already, or was deleted, and versions never change.",
	Fix:   "Publish the content under a new version.",
}

// tagDigest returns the digest of the tag that is pushed, or zero if the registry has none or does not state it: the
// push itself then shows whether it is allowed. With doubt, a HEAD that finds no tag is repeated as GET. Without a tag,
// it is the digest of the root if the repository has it.
func (p *pusher) tagDigest(ctx context.Context, doubt bool) oci.Digest {
	if p.ref.Tag == "" {
		if p.has(ctx, p.root) {
			return p.root
		}
		return oci.Digest{}
	}
	tag := p.ref.WithDigest(oci.Digest{})
	ans, err := p.look(ctx, tag, http.MethodHead)
	if err == nil && !contentDigest(ans.Header).IsZero() {
		return contentDigest(ans.Header)
	}
	if ans.Response != nil && ans.StatusCode == http.StatusNotFound && !doubt {
		return oci.Digest{}
	}
	if ans, err = p.look(ctx, tag, http.MethodGet); err != nil {
		return oci.Digest{}
	}
	return oci.DigestOf(ans.body)
}

// has reports whether the repository has a manifest.
func (p *pusher) has(ctx context.Context, d oci.Digest) bool {
	_, err := p.look(ctx, p.ref.WithDigest(d), http.MethodHead)
	return err == nil
}

// look requests a manifest with the token of the push, and does not repeat a failed request.
func (p *pusher) look(ctx context.Context, ref oci.Reference, method string) (answer, error) {
	c := p.s.manifestCall(ref, method)
	c.actions, c.replaceable = pushActions, true
	return p.s.read(ctx, c, p.remote.opts.Limits.Manifest)
}

// refused returns the error of a push whose root the registry refuses: none if another client has pushed the same
// content meanwhile, and ErrImmutable if the registry does not replace the content of the tag. Registries have no
// common response for that: some have one of three statuses for a tag that exists, and the others say it.
func (p *pusher) refused(ctx context.Context, resp *http.Response, err error) error {
	var response *responseError
	says := errors.As(err, &response) && changeRefusals.MatchString(response.text)
	isConflict := resp != nil && slices.Contains(conflicts, resp.StatusCode)
	if p.ref.Tag == "" || !says && !isConflict {
		return err
	}
	switch current := p.tagDigest(ctx, true); {
	case current == p.root:
		return nil
	case current.IsZero() && !says:
		return err
	case current.IsZero():
		return ErrImmutable.New(response, "%s cannot become %s", p.ref, p.root.Short())
	case !says || strings.Contains(response.text, p.root.Short()): // A registry server of xpkg names the digests too.
		return ErrImmutable.New(nil, "%s is %s and cannot become %s", p.ref, current.Short(), p.root.Short())
	default:
		return ErrImmutable.New(response, "%s is %s and cannot become %s", p.ref, current.Short(), p.root.Short())
	}
}

// conflicts are the statuses with which registries refuse to replace the content of a tag.
var conflicts = []int{http.StatusConflict, http.StatusPreconditionFailed, http.StatusMethodNotAllowed}

// changeRefusals matches the responses with which registries refuse to replace the content of a tag.
var changeRefusals = regexp.MustCompile(
	`(?i)immutab|never change|overwr|already exist|write.?locked|(cannot|can't|not) be (replaced|updated|changed|modified)`)
