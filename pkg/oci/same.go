package oci

// Location returns the repository to which requests for r are sent, as "host/path". It is equal for all spellings of
// one repository, and only for these. On Docker Hub, they are docker.io/x, index.docker.io/x and docker.io/library/x;
// [Reference.Name] keeps the spelling of r. A port is a part of the location, because the default port depends on the
// transport.
func (r Reference) Location() string {
	if r.Registry == "" {
		return r.Repository // It is the name of a file in the package cache.
	}
	return r.Host() + "/" + r.RepositoryPath()
}

// SameRepository reports whether r and other are in one repository.
func (r Reference) SameRepository(other Reference) bool { return r.Location() == other.Location() }

// SameVersion reports whether r and other name one version of one repository: the same tag or, without a tag, the same
// digest. The digest beside a tag does not count: it is the content that the tag had when it was resolved.
func (r Reference) SameVersion(other Reference) bool {
	return r.SameRepository(other) && r.Tag == other.Tag && (r.Tag != "" || r.Digest == other.Digest)
}

// Satisfies reports whether r is what request names: it is in the same repository, and has the tag and the digest of
// request, as far as request has them. A reference with a tag and a digest therefore satisfies a request for the tag,
// for the digest, and for both. R is usually the reference of an installed package with the digest of its content;
// without a digest, it satisfies no request for one.
func (r Reference) Satisfies(request Reference) bool {
	return r.SameRepository(request) &&
		(request.Tag == "" || r.Tag == request.Tag) && (request.Digest.IsZero() || r.Digest == request.Digest)
}

// RepositoryLocation returns the [Reference.Location] of a reference, or of the name of a repository. It returns text
// that is neither unchanged. It is the key of a repository in maps; [RepositoryName] is its name for display and in
// files.
func RepositoryLocation(s string) string {
	ref, err := ParseReference(s, ParseOptions{AllowUntagged: true})
	if err != nil {
		return s
	}
	return ref.Location()
}

// SameRepository reports whether two references, or names of repositories, are in one repository. Text that is neither
// is only in the same repository as equal text.
func SameRepository(a, b string) bool {
	return a == b || RepositoryLocation(a) == RepositoryLocation(b)
}

// SameVersion is [Reference.SameVersion] for text. Text that is not a reference is only the same version as equal text.
func SameVersion(a, b string) bool {
	x, errX := ParseReference(a, ParseOptions{})
	y, errY := ParseReference(b, ParseOptions{})
	if errX != nil || errY != nil {
		return a == b
	}
	return x.SameVersion(y)
}
