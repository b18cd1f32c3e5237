package graph

import (
	"cmp"
	"slices"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

// Version is a version of a package: a tag, a digest, or both. The zero value is an unknown version.
type Version struct {
	Tag    string
	Digest oci.Digest
}

// String returns the tag, or the digest if there is no tag.
func (v Version) String() string {
	switch {
	case v.Tag != "":
		return v.Tag
	case v.Digest.IsZero():
		return "an unknown version"
	}
	return v.Digest.String()
}

// satisfies reports whether a version satisfies a constraint. Every version satisfies the empty constraint.
func (v Version) satisfies(constraint string) bool {
	if constraint == "" {
		return true
	}
	pin := v.Tag
	if !v.Digest.IsZero() {
		pin = lockfile.Package{Version: v.Tag, Digest: v.Digest}.Pin()
	}
	return version.ParseConstraint(constraint).Accepts(pin)
}

// Running returns the versions of a package whose objects may exist in a cluster: the version of its active revision
// and, until that one has been healthy, the versions of the former active revision and of the last healthy one. While
// one revision replaces another, it is the last active one, and, during a rollback, also the one that follows. There is
// none before the first revision. Revisions are the revisions of the package.
func Running(p v1.Package, revisions []v1.PackageRevision) []Version {
	rev := lastActive(revisions)
	if rev == nil {
		return nil
	}
	running := []Version{revisionVersion(rev)}
	a, isInactive := p.PackageStatus().Activation, rev.RevisionSpec().DesiredState != v1.RevisionActive
	isSettled := a != nil && a.Healthy && a.Revision == rev.GetName() && a.Number == rev.RevisionSpec().Revision
	if (isInactive || isSettled) && !isLeft(rev, RolledBackTo(p, revisions)) {
		return running
	}
	previous, back := revision.Previous(rev.GetName(), revision.States(revisions, rev.GetName())),
		revision.Back(p, rev.GetName(), revisions)
	for _, r := range revisions {
		if r.GetName() == previous || r.GetName() == back {
			running = append(running, revisionVersion(r))
		}
	}
	return running
}

// isLeft reports whether a package is being rolled back from a revision to another one. The revision shows it too,
// because the cache may not have the status of the package yet.
func isLeft(rev, back v1.PackageRevision) bool {
	return revision.HasFailed(rev) || back != nil && back.GetName() != rev.GetName()
}

// lastActive returns the revision that is active or was active last; nil if none was. Of two active revisions, it
// returns the one with the higher number.
func lastActive(revisions []v1.PackageRevision) v1.PackageRevision {
	var out v1.PackageRevision
	for _, rev := range revisions {
		if rev.RevisionSpec().Revision > 0 && (out == nil || newer(rev, out)) {
			out = rev
		}
	}
	return out
}

func newer(a, b v1.PackageRevision) bool {
	rank := func(r v1.PackageRevision) int {
		if r.RevisionSpec().DesiredState == v1.RevisionActive {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.RevisionSpec().Revision, b.RevisionSpec().Revision)) > 0
}

func revisionVersion(rev v1.PackageRevision) Version {
	var out Version
	if ref, err := oci.ParseReference(rev.RevisionSpec().Image, oci.ParseOptions{}); err == nil {
		out.Tag, out.Digest = ref.Tag, ref.Digest
	}
	if d, err := oci.ParseDigest(rev.RevisionSpec().Digest); err == nil {
		out.Digest = d
	}
	return out
}

// RolledBackTo returns the revision to which a package was rolled back because its requested version did not become
// healthy in time; nil if there is none. It holds until the package requests another version.
func RolledBackTo(p v1.Package, revisions []v1.PackageRevision) v1.PackageRevision {
	back := revision.PolicyOf(p).Back
	if i := slices.IndexFunc(
		revisions, func(r v1.PackageRevision) bool { return back != "" && r.GetName() == back },
	); i >= 0 {
		return revisions[i]
	}
	return nil
}

// VersionOf returns the installed version of a package.
func VersionOf(n Node) Version { return Version{n.Version, n.Digest} }
