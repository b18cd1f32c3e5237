package registry

import (
	"os"
	"path/filepath"
	"time"

	"github.com/xpkg-dev/xpkg/internal/registry/access"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

// deletionTime is the time after which a version cannot be deleted. It can be yanked then.
const deletionTime = 72 * time.Hour

// checkDeletion checks that a version is new enough to be deleted and that no package depends on it. Administrators can delete all
// content.
func (p *push) checkDeletion() error {
	if p.policy().IsAdministrator(p.subject) {
		return nil
	}
	view := p.site.view(access.Subject{User: defaultAdministrator, Grants: []access.Scope{{Repositories: []string{"*"}, Actions: []access.Action{access.Read}}}})
	row, history, ok := view.Package(p.api.repository)
	if !ok {
		return nil
	}
	for _, v := range history.Versions {
		if v.Tag != p.api.reference && v.Digest.String() != p.api.reference {
			continue
		}
		if pushed := p.images.pushed(p.api.repository, v.Digest); !pushed.IsZero() && p.now().Sub(pushed) > deletionTime {
			return ErrPublished.New(nil, "%s:%s was published more than 72 hours ago", p.api.repository, v.Tag)
		}
		if err := checkDependents(view, row.Repository, v); err != nil {
			return err
		}
	}
	return nil
}

// checkDependents checks that no newest version of a package depends on a version. The error names no dependents, because the client
// may not be allowed to read them.
func checkDependents(view *View, repository string, v catalog.Version) error {
	for _, d := range view.Dependents(repository) {
		if version.ParseConstraint(d.Constraint).Accepts(v.Tag) {
			return ErrPublished.New(nil, "other packages depend on %s:%s", repository, v.Tag)
		}
	}
	return nil
}

// pushed implements images: the time of the file with the manifest.
func (f *folder) pushed(repository string, d oci.Digest) time.Time {
	info, err := os.Stat(filepath.Join(f.root, filepath.FromSlash(repository), "blobs", "sha256", d.Hex()))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// pushed implements images. The time is not known.
func (b *backend) pushed(string, oci.Digest) time.Time { return time.Time{} }
