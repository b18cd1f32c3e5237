package registry

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/xpkg-dev/xpkg/internal/registry/protocol"
	"github.com/xpkg-dev/xpkg/internal/registry/storage"
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
	damage(visible func(repository string) bool) storage.Damage
	// close releases the resources.
	close() error
}

// folder stores content in OCI layouts below a folder.
type folder struct {
	http.Handler
	store *storage.Store
}

// collectionTime is the time between two collections of garbage unless the options say otherwise.
const collectionTime = 15 * time.Minute

// contentGrace is the time for which new content that nothing refers to is kept unless the options say otherwise.
const contentGrace = time.Hour

// OpenStore opens the folder of a registry of this process. The result serves its content without access control.
func OpenStore(root string, gc GarbageCollection, log *slog.Logger) (*storage.Store, http.Handler) {
	if gc.Every == 0 {
		gc.Every = collectionTime
	}
	if gc.Grace == 0 {
		gc.Grace = contentGrace
	}
	store := storage.Open(root, storage.Options{Every: gc.Every, Grace: gc.Grace, Log: log})
	return store, &protocol.Handler{Store: store, StateHeader: remote.RepositoryStateHeader, Log: log}
}

// hasTags implements images. The name of a damaged repository is not free.
func (f *folder) hasTags(_ context.Context, repository string) (bool, error) {
	tags, err := f.tags(repository)
	if errors.Is(err, ErrDamaged) {
		return true, nil
	}
	return len(tags) > 0, err
}

// tags returns the digests of the tags of a repository, whether their manifests are missing or damaged or not; none if
// it does not exist.
func (f *folder) tags(repository string) (map[string]storage.Digest, error) {
	tags, _, err := f.store.Tags(repository)
	switch {
	case errors.Is(err, storage.ErrRepositoryUnknown):
		return nil, nil
	case errors.Is(err, storage.ErrDamaged):
		return nil,
			ErrDamaged.New(nil, "the repository %s is damaged; the log of the server names the file and the remedy", repository)
	case err != nil:
		return nil,
			ErrServer.New(nil, "the repository %s cannot be read now; the log of the server has the cause", repository)
	}
	return tags, nil
}

// probe implements images: it reads the folder, and the list and the newest state of the index if there is one.
func (f *folder) probe() error {
	if err := f.store.Probe(); err != nil {
		return err
	}
	content, err := f.store.Manifest(indexRepository, indexTag)
	switch {
	case err == nil:
		return content.Close()
	case errors.Is(err, storage.ErrRepositoryUnknown), errors.Is(err, storage.ErrManifestUnknown),
		errors.Is(err, storage.ErrDamaged):
		return nil // Damage is reported, and everything else is served.
	}
	return err
}

// repositories implements images.
func (f *folder) repositories(ctx context.Context) ([]string, error) {
	return repositoriesIn(ctx, f.store)
}

// repositoriesIn returns the names of the repositories in a store, sorted, including those that have content but no
// list of it.
func repositoriesIn(ctx context.Context, store *storage.Store) ([]string, error) {
	found, err := store.Repositories(ctx)
	if err != nil {
		return nil, ErrServer.New(err, "cannot list the repositories")
	}
	return found, nil
}

// digest implements images. A tag keeps its digest while its manifest is missing or damaged, so that it cannot get
// other content.
func (f *folder) digest(_ context.Context, repository, reference string) (oci.Digest, error) {
	if storage.IsTag(reference) {
		tags, err := f.tags(repository)
		if err != nil || tags[reference] == "" {
			return oci.Digest{}, err
		}
		return oci.ParseDigest(string(tags[reference]))
	}
	content, err := f.store.Manifest(repository, reference)
	switch {
	case errors.Is(err, storage.ErrRepositoryUnknown), errors.Is(err, storage.ErrManifestUnknown):
		return oci.Digest{}, nil
	case err != nil:
		return oci.Digest{}, ErrServer.New(err, "cannot read %s:%s", repository, reference)
	}
	defer content.Close()
	return oci.ParseDigest(string(content.Digest))
}

// digestsOf returns the function that reads the digests of all tags at once; nil if a registry has none.
func digestsOf(i images) func(repository string) (map[string]oci.Digest, error) {
	if f, ok := i.(*folder); ok {
		return f.digests
	}
	return nil
}

// digests returns the digests of the tags of a repository whose manifests are there and not damaged.
func (f *folder) digests(repository string) (map[string]oci.Digest, error) {
	tags, err := f.tags(repository)
	if err != nil {
		return nil, err
	}
	found := make(map[string]oci.Digest, len(tags))
	for tag, d := range tags {
		content, err := f.store.Blob(repository, d)
		if errors.Is(err, storage.ErrBlobUnknown) {
			continue
		}
		if err != nil {
			return nil, ErrServer.New(err, "cannot read the content %s of the repository %s", d, repository)
		}
		if err := content.Close(); err != nil {
			return nil, err
		}
		if parsed, err := oci.ParseDigest(string(d)); err == nil { // Packages have digests with sha256.
			found[tag] = parsed
		}
	}
	return found, nil
}

// pushed implements images. It is the time of the file.
func (f *folder) pushed(repository string, d oci.Digest) time.Time {
	return f.store.Pushed(repository, storage.Digest(d.String()))
}

// damage implements images.
func (f *folder) damage(visible func(repository string) bool) storage.Damage {
	return f.store.Damage(visible)
}

// close implements images.
func (f *folder) close() error { return f.store.Close() }

// headDigest returns the digest of a tag in the response of a handler.
func headDigest(ctx context.Context, handler http.Handler, repository, tag string) (oci.Digest, error) {
	path := protocol.Request{Endpoint: protocol.Manifest, Repository: repository, Reference: tag}.Path()
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

// acceptedManifests returns the media types of manifests. Registries know no wildcard.
func acceptedManifests() []string {
	return []string{
		string(oci.MediaTypeOCIManifest), string(oci.MediaTypeOCIIndex), string(oci.MediaTypeDockerManifest),
		string(oci.MediaTypeDockerList),
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
