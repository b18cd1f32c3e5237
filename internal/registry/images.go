package registry

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/olareg/olareg"
	"github.com/olareg/olareg/config"
	"github.com/olareg/olareg/types"

	"github.com/xpkg-dev/xpkg/internal/registry/access"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// images is the registry that stores the content: a folder, or a registry of another project.
type images interface {
	// ServeHTTP serves the OCI distribution API.
	http.Handler
	// hasTags reports whether a repository has tags other than claims.
	hasTags(ctx context.Context, repository string) (bool, error)
	// repositories returns the names of the repositories, sorted.
	repositories(ctx context.Context) ([]string, error)
	// digest returns the digest of a tag, and zero if it does not exist.
	digest(ctx context.Context, repository, tag string) (oci.Digest, error)
	// pushed returns the time at which a manifest was pushed; zero if it is not known.
	pushed(repository string, d oci.Digest) time.Time
	// probe fails if content cannot be read now.
	probe() error
	// damage returns what is known to be damaged in visible repositories.
	damage(visible func(repository string) bool) damage
	// close releases the resources.
	close() error
}

// damage counts the repositories that are refused, and the manifests and blobs that are not served.
type damage struct{ Repositories, Contents int }

// MostReferrerLists is the number of long lists of referrers that olareg keeps in memory.
const MostReferrerLists = 8

// folder stores content in OCI layouts below a folder.
type folder struct {
	images *olareg.Server
	// absent has no content.
	absent *olareg.Server
	// serve and serveNothing serve them.
	serve, serveNothing http.Handler
	root                string
	layouts             *Layouts
	contents            *contents
	// grace is the time for which new content is kept.
	grace time.Duration
	log   *slog.Logger
}

func openFolder(root string, gc GarbageCollection, log *slog.Logger) *folder {
	yes, collection := true, gc.Config()
	f := &folder{root: root, grace: collection.GracePeriod, log: log, absent: newAbsent(), layouts: NewLayouts(root, log), contents: newContents(root, log)}
	if err := RemoveUploads(root); err != nil {
		log.Warn("cannot remove unfinished uploads", "error", err)
	}
	RemoveEmpty(root, f.grace, log)
	f.layouts.checkAll()
	f.images = olareg.New(config.Config{
		Storage: config.ConfigStorage{
			StoreType: config.StoreDir, RootDir: root, GC: collection,
		},
		API: config.ConfigAPI{
			DeleteEnabled: &yes,
			Blob:          config.ConfigAPIBlob{DeleteEnabled: &yes},
			Manifest:      config.ConfigAPIManifest{Limit: largestManifest},
			Referrer:      config.ConfigAPIReferrer{PageCacheLimit: MostReferrerLists},
		},
		Log: f.layouts.Log(),
	})
	f.serve, f.serveNothing = f.contents.handler(f.layouts.storing(Conforming(f.images))), absentImages(f.absent)
	return f
}

// ServeHTTP implements images.
func (f *folder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	api, ok := parseRequest(r.URL.Path)
	if ok && f.layouts.refuse(w, r, api.repository) {
		return
	}
	if ok && isRead(r) && api.repository != "" && !f.exists(api.repository) {
		// olareg would remember every name of a repository that does not exist.
		f.serveNothing.ServeHTTP(w, withPath(r, apiRequest{endpoint: api.endpoint, repository: absentRepository, reference: api.reference}))
		return
	}
	if ok && api.endpoint == tagsEndpoint {
		f.setState(w.Header(), api.repository)
	}
	f.serve.ServeHTTP(w, r)
}

// setState sets the state of a repository in the header of a response: the digest of the file that lists its manifests, tags and referrers.
func (f *folder) setState(header http.Header, repository string) {
	document, err := os.ReadFile(filepath.Join(f.root, filepath.FromSlash(repository), layoutFile))
	if err == nil {
		header.Set(remote.RepositoryStateHeader, oci.DigestOf(document).String())
	}
}

// hasTags implements images. The name of a damaged repository is not free.
func (f *folder) hasTags(_ context.Context, repository string) (bool, error) {
	switch err := f.layouts.check(repository); {
	case errors.Is(err, ErrDamaged):
		return true, nil
	case err != nil:
		return false, err
	}
	return f.exists(repository) && f.layouts.hasTags(repository), nil
}

// probe implements images: it reads the folder, and the list and the newest state of the index if there is one.
func (f *folder) probe() error {
	dir, err := os.Open(f.root)
	if err != nil {
		return err
	}
	_, err = dir.Readdirnames(1)
	if err = errors.Join(err, dir.Close()); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	tags, err := f.layouts.tags(indexRepository)
	if d, ok := tags[indexTag]; ok && err == nil {
		_, err = os.ReadFile(f.contents.path(indexRepository, d))
	}
	if isAbsent(err) || errors.Is(err, ErrDamaged) {
		return nil // Damage is reported, and everything else is served.
	}
	return err
}

// exists reports whether a repository has content.
func (f *folder) exists(repository string) bool {
	if !access.ValidRepository(repository) {
		return false
	}
	info, err := os.Stat(filepath.Join(f.root, filepath.FromSlash(repository), layoutFile))
	return err == nil && info.Mode().IsRegular()
}

// repositories implements images.
func (f *folder) repositories(ctx context.Context) ([]string, error) {
	return repositoriesIn(ctx, f.root)
}

// repositoriesIn returns the names of the repositories in a folder, sorted, including those that have content but no list of it.
func repositoriesIn(ctx context.Context, root string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		dir := filepath.Dir(path)
		isRepository := entry.Name() == layoutFile || entry.IsDir() && entry.Name() == blobsFolder && isDamaged(dir)
		if isRepository {
			name, err := filepath.Rel(root, dir)
			if err != nil {
				return err
			}
			if name = filepath.ToSlash(name); access.ValidRepository(name) {
				found = append(found, name)
			}
		}
		if entry.IsDir() && (isRepository || entry.Name() == blobsFolder || strings.HasPrefix(entry.Name(), "_")) {
			return filepath.SkipDir
		}
		return ctx.Err()
	})
	if err != nil {
		return nil, ErrServer.New(err, "cannot list the repositories in %s", root)
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// digest implements images. A tag keeps its digest while its manifest is missing or damaged, so that it cannot get other content.
func (f *folder) digest(ctx context.Context, repository, tag string) (oci.Digest, error) {
	d, err := headDigest(ctx, f, repository, tag)
	if err != nil || !d.IsZero() || isDigest(tag) {
		return d, err
	}
	return f.layouts.recorded(repository, tag)
}

// digestsOf returns the function that reads the digests of all tags at once; nil if a registry has none.
func digestsOf(i images) func(repository string) (map[string]oci.Digest, error) {
	if f, ok := i.(*folder); ok {
		return f.digests
	}
	return nil
}

// digests returns the digests of the tags of a repository whose manifests are there and not damaged. olareg copies the list of a repository for each request, so that
// a request for each tag would take a time that grows with the square of their number.
func (f *folder) digests(repository string) (map[string]oci.Digest, error) {
	tags, err := f.layouts.tags(repository)
	for tag, d := range tags {
		info, err := os.Stat(f.contents.path(repository, d))
		if err != nil || !info.Mode().IsRegular() {
			delete(tags, tag)
			continue
		}
		switch isDamaged, err := f.contents.isDamaged(repository, d); {
		case err != nil:
			return nil, ErrServer.New(err, "cannot read the content %s of the repository %s", d, repository)
		case isDamaged:
			delete(tags, tag)
		}
	}
	return tags, err
}

// damage implements images.
func (f *folder) damage(visible func(repository string) bool) damage {
	return damage{f.layouts.damaged(visible), f.contents.damaged(visible)}
}

// close implements images.
func (f *folder) close() error {
	f.layouts.checkAll() // olareg collects garbage when it closes.
	err := errors.Join(CloseImages(f.images), f.absent.Close())
	RemoveEmpty(f.root, f.grace, f.log)
	return err
}

// CloseImages closes a registry of olareg. When it closes, olareg reads each repository again that it was asked for, which fails for one
// whose first upload did not complete; this is no error.
func CloseImages(images *olareg.Server) error { return withoutNotFound(images.Close()) }

// withoutNotFound returns an error without its parts that report a repository without content.
func withoutNotFound(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var rest []error
		for _, part := range joined.Unwrap() {
			rest = append(rest, withoutNotFound(part))
		}
		return errors.Join(rest...)
	}
	if errors.Is(err, types.ErrNotFound) {
		return nil
	}
	return err
}

// headDigest returns the digest of a tag in the response of a handler.
func headDigest(ctx context.Context, handler http.Handler, repository, tag string) (oci.Digest, error) {
	path := apiRequest{endpoint: manifestEndpoint, repository: repository, reference: tag}.path()
	r, err := http.NewRequestWithContext(ctx, http.MethodHead, path, nil)
	if err != nil {
		return oci.Digest{}, err
	}
	r.Header["Accept"] = acceptedManifests()
	answer := &headRecorder{header: http.Header{}}
	handler.ServeHTTP(answer, r)
	switch answer.status {
	case http.StatusNotFound:
		return oci.Digest{}, nil
	case http.StatusOK:
		return oci.ParseDigest(answer.header.Get("Docker-Content-Digest"))
	}
	return oci.Digest{}, ErrServer.New(nil, "cannot read %s:%s: status %d", repository, tag, answer.status)
}

// acceptedManifests returns the media types of manifests. olareg knows no wildcard.
func acceptedManifests() []string {
	return []string{
		string(oci.MediaTypeOCIManifest), string(oci.MediaTypeOCIIndex), string(oci.MediaTypeDockerManifest), string(oci.MediaTypeDockerList),
	}
}

// headRecorder records the header of a response.
type headRecorder struct {
	header http.Header
	status int
}

// Header implements [http.ResponseWriter].
func (h *headRecorder) Header() http.Header { return h.header }

// WriteHeader implements [http.ResponseWriter].
func (h *headRecorder) WriteHeader(status int) {
	if h.status == 0 {
		h.status = status
	}
}

// Write implements [http.ResponseWriter].
func (h *headRecorder) Write(p []byte) (int, error) {
	h.WriteHeader(http.StatusOK)
	return len(p), nil
}
