package oci

import (
	"errors"
	"fmt"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/text"
)

// ErrInvalidReference is the code for an invalid reference.
var ErrInvalidReference = errcode.Code{
	Name: "InvalidReference", Class: errcode.Usage,
	Cause: "The reference of a package is not registry/repository with a :tag, an @sha256 digest, or both.",
	Fix:   "Write the reference in full, for example xpkg.crossplane.io/crossplane-contrib/provider-nop:v0.4.0.",
}

const (
	maxRepository = 255
	maxTag        = 128
	// maxReference bounds the length of the input.
	maxReference = 1024

	dockerHub     = "docker.io"
	dockerHubHost = "index.docker.io"
)

// Reference names an image or an index in a registry by tag, by digest, or by both. With
// both, the digest identifies the content, and the tag is the version for display and
// constraints. A Reference without either names a repository.
type Reference struct {
	// Registry is the canonical host, with the port if the reference has one.
	Registry string
	// Repository is the path within the registry.
	Repository string
	Tag        string
	Digest     Digest
}

// ParseOptions configures ParseReference.
type ParseOptions struct {
	// DefaultRegistry is the registry of references that do not name one. If it is empty,
	// such a reference is an error.
	DefaultRegistry string
	// AllowUntagged accepts a reference with neither tag nor digest, for
	// operations on a whole repository.
	AllowUntagged bool
}

// ParseReference parses "registry/repository", ":tag" and "@sha256:…". It converts
// registry hosts to the canonical form: lower case, punycode, no trailing dot. The other
// parts must follow the OCI distribution specification ("Pulling manifests"): repository
// in lower case, tag of at most 128 characters.
func ParseReference(s string, opts ParseOptions) (Reference, error) {
	ref, err := parseReference(s, opts)
	if err != nil {
		return Reference{}, ErrInvalidReference.New(err, "cannot read reference %q", text.Clip(errcode.HideCredentials(s)))
	}
	return ref, nil
}

// MustParseReference is like ParseReference but panics if s is not a fully qualified
// reference. It is intended for constants.
func MustParseReference(s string) Reference {
	ref, err := ParseReference(s, ParseOptions{})
	if err != nil {
		panic(err)
	}
	return ref
}

// RepositoryName returns the normalized name of the repository of a reference: its registry
// and repository, without tag and digest. It returns text that is not a reference unchanged.
// Two names of one repository can differ; see [SameRepository].
func RepositoryName(s string) string {
	ref, err := ParseReference(s, ParseOptions{AllowUntagged: true})
	if err != nil {
		return s
	}
	return ref.Name()
}

func parseReference(s string, opts ParseOptions) (Reference, error) {
	if len(s) > maxReference {
		return Reference{}, fmt.Errorf("it has %d characters, at most %d are allowed", len(s), maxReference)
	}
	if s == "" {
		return Reference{}, syntaxError(s, 0, "it is empty")
	}
	if errcode.HideCredentials(s) != s {
		return Reference{},
			errors.New("a reference has no credentials: use a pull secret of the package, or `docker login` on this machine")
	}
	if i := strings.Index(s, "://"); i >= 0 {
		return Reference{}, syntaxError(s, i, "a reference has no scheme such as %q; write %s", s[:i+3], text.Clip(s[i+3:]))
	}
	host, rest, offset := splitRegistry(s)
	if host == "" {
		if opts.DefaultRegistry == "" {
			return Reference{}, syntaxError(
				s, 0, "it does not name a registry, and there is no default; write for example %s/%s", "xpkg.crossplane.io", s,
			)
		}
		host = opts.DefaultRegistry
	}
	registry, err := canonicalHost(host)
	if err != nil {
		return Reference{}, syntaxError(s, 0, "%v", err)
	}
	ref := Reference{Registry: registry}
	if name, digest, found := strings.Cut(rest, "@"); found {
		if ref.Digest, err = ParseDigest(digest); err != nil {
			return Reference{}, fmt.Errorf("%w, at character %d", err, offset+len(name)+2)
		}
		rest = name
	}
	name, tag, tagged := strings.Cut(rest, ":")
	if err := checkRepository(s, name, offset); err != nil {
		return Reference{}, err
	}
	ref.Repository = name
	if tagged {
		if err := checkTag(s, tag, offset+len(name)+1); err != nil {
			return Reference{}, err
		}
		ref.Tag = tag
	}
	if ref.Tag == "" && ref.Digest.IsZero() && !opts.AllowUntagged {
		return Reference{}, syntaxError(s, len(s), "it has neither a tag nor a digest")
	}
	return ref, nil
}

// splitRegistry splits the registry from the repository. The first component is a
// registry if it has a dot or a port, or is "localhost".
func splitRegistry(s string) (host, rest string, offset int) {
	first, rest, found := strings.Cut(s, "/")
	if !found || !looksLikeRegistry(first) {
		return "", s, 0
	}
	return first, rest, len(first) + 1
}

func looksLikeRegistry(first string) bool {
	return first == "localhost" || strings.ContainsAny(first, ".:")
}

// checkRepository applies the grammar of <name> of the OCI distribution
// specification.
func checkRepository(s, name string, offset int) error {
	if name == "" {
		return syntaxError(s, offset, "the repository is empty")
	}
	if len(name) > maxRepository {
		return syntaxError(s, offset+
			maxRepository, "the repository has %d characters, at most %d are allowed", len(name), maxRepository)
	}
	for i, r := range name {
		switch {
		case r >= 'A' && r <= 'Z':
			return syntaxError(s, offset+i, "the repository must be in lower case")
		case !isLowerAlnum(r) && !strings.ContainsRune("._-/", r):
			return syntaxError(s, offset+i, "a repository cannot have the character %q", r)
		}
	}
	for i := range len(name) {
		if !isLowerAlnum(rune(name[i])) && !separatorAllowed(name, i) {
			return syntaxError(s, offset+
				i, "%q is not allowed here: parts of the repository start and end with a letter or a digit", name[i])
		}
	}
	return nil
}

// separatorAllowed reports whether the separator at i is between letters or digits. "__"
// and a sequence of "-" are one separator.
func separatorAllowed(name string, i int) bool {
	start, end := i, i+1
	for start > 0 && name[start-1] == name[i] {
		start--
	}
	for end < len(name) && name[end] == name[i] {
		end++
	}
	switch length := end - start; {
	case start == 0 || end == len(name):
		return false
	case !isLowerAlnum(rune(name[start-1])) || !isLowerAlnum(rune(name[end])):
		return false
	case name[i] == '-':
		return true
	case name[i] == '_':
		return length <= 2
	default:
		return length == 1
	}
}

// checkTag applies the grammar of <reference> as a tag of the OCI distribution
// specification.
func checkTag(s, tag string, offset int) error {
	if tag == "" {
		return syntaxError(s, offset, "the tag is empty")
	}
	if i := strings.IndexFunc(tag, notTagRune); i >= 0 {
		return syntaxError(s, offset+i, "a tag cannot have the character %q", []rune(tag[i:])[0])
	}
	if tag[0] == '.' || tag[0] == '-' {
		return syntaxError(s, offset, "a tag cannot start with %q", tag[0])
	}
	if len(tag) > maxTag {
		return syntaxError(s, offset+maxTag, "the tag has %d characters, at most %d are allowed", len(tag), maxTag)
	}
	return nil
}

// ValidTag reports whether tag matches the grammar of tags in the OCI distribution
// specification.
func ValidTag(tag string) bool { return checkTag(tag, tag, 0) == nil }

// Name returns "registry/repository", the source of a package without its version.
func (r Reference) Name() string {
	if r.Registry == "" {
		return r.Repository // It is the name of a file in the package cache.
	}
	return r.Registry + "/" + r.Repository
}

// Identifier returns the digest if there is one, and the tag otherwise.
func (r Reference) Identifier() string {
	if !r.Digest.IsZero() {
		return r.Digest.String()
	}
	return r.Tag
}

// String returns the fully qualified reference. ParseReference reads it back to the same
// value.
func (r Reference) String() string {
	s := r.Name()
	if r.Tag != "" {
		s += ":" + r.Tag
	}
	if !r.Digest.IsZero() {
		s += "@" + r.Digest.String()
	}
	return s
}

// WithDigest returns r with the digest; the tag is kept.
func (r Reference) WithDigest(d Digest) Reference {
	r.Digest = d
	return r
}

// WithTag returns r with the tag and without a digest.
func (r Reference) WithTag(tag string) Reference {
	r.Tag, r.Digest = tag, Digest{}
	return r
}

// Host returns the host, with its port if there is one, to which requests for the reference
// are sent. It differs from Registry for Docker Hub, whose registry has another host.
func (r Reference) Host() string {
	if r.Registry == dockerHub {
		return dockerHubHost
	}
	return r.Registry
}

// RepositoryPath returns the repository in requests to the registry. On Docker Hub,
// repositories without an owner are below "library".
func (r Reference) RepositoryPath() string {
	if r.Host() == dockerHubHost && !strings.Contains(r.Repository, "/") {
		return "library/" + r.Repository
	}
	return r.Repository
}

func isLowerAlnum(r rune) bool {
	return (r >= 'a' && r <= 'z') || (r >= '0' && r <= '9')
}

func notTagRune(r rune) bool {
	return !isLowerAlnum(r) && (r < 'A' || r > 'Z') && r != '_' && r != '.' && r != '-'
}
