package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/internal/keyedmutex"
	"github.com/xpkg-dev/xpkg/internal/registry/access"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// The files of an OCI layout.
const (
	// layoutFile is the file that lists the manifests and tags. Every repository has it.
	layoutFile = "index.json"
	// markerFile states the version of the layout.
	markerFile = "oci-layout"
	// blobsFolder is the folder with the content.
	blobsFolder = "blobs"
)

// marker is the content of the marker file, which is the same in every layout.
const marker = `{"imageLayoutVersion":"1.0.0"}`

// Layouts checks the OCI layouts below a folder. olareg reads them leniently: a repository whose list of manifests is damaged is an empty one for
// it, and the next push replaces the list.
type Layouts struct {
	root string
	log  *slog.Logger

	mu      sync.Mutex
	checked map[string]layoutCheck
	// linked are the folders whose names, and those of their parents, are on the disk.
	linked map[linkedFolder]bool
	// unflushed are the files with content that could not be written to the disk.
	unflushed map[string]bool
	// sync writes a file or a folder to the disk.
	sync func(path string) error

	// lists locks the list of manifests of a repository, and its copy. olareg does not lock it.
	lists keyedmutex.Mutex[string]
}

// layoutCheck is the result of a check of a list of manifests.
type layoutCheck struct {
	file fileState
	err  error
	// hasTags means that a manifest has a tag.
	hasTags bool
	// isUnreadable means that the list could not be read, whatever it has.
	isUnreadable bool
}

// NewLayouts returns the layouts below a folder.
func NewLayouts(root string, log *slog.Logger) *Layouts {
	return &Layouts{
		root: root, log: log, checked: map[string]layoutCheck{}, linked: map[linkedFolder]bool{}, unflushed: map[string]bool{}, sync: fileutil.Sync,
	}
}

// Handler returns a handler that refuses the requests to the repositories of a registry of olareg whose layouts are damaged.
func (l *Layouts) Handler(images http.Handler) http.Handler {
	l.checkAll()
	images = newContents(l.root, l.log).handler(l.storing(images))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if api, ok := parseRequest(r.URL.Path); !ok || !l.refuse(w, r, api.repository) {
			images.ServeHTTP(w, r)
		}
	})
}

// refuse responds to a request to a damaged repository, and reports whether it did. It accepts requests without a repository ("").
func (l *Layouts) refuse(w http.ResponseWriter, r *http.Request, repository string) bool {
	err := l.check(repository)
	if err != nil {
		writeRefusal(w, r, err)
	}
	return err != nil
}

// damaged returns the number of visible repositories whose layouts were found damaged and are not repaired.
func (l *Layouts) damaged(visible func(repository string) bool) int {
	return countDamaged(&l.mu, l.checked, func(last layoutCheck) bool { return last.err != nil }, func(repository string) bool {
		return visible(repository) && l.check(repository) != nil
	})
}

// countDamaged returns the number of entries of a map of checks, which a mutex protects, that were damaged and are damaged now.
func countDamaged[K comparable, C any](mu *sync.Mutex, checked map[K]C, wasDamaged func(C) bool, isDamaged func(K) bool) int {
	mu.Lock()
	var found []K
	for key, last := range checked {
		if wasDamaged(last) {
			found = append(found, key)
		}
	}
	mu.Unlock()
	n := 0
	for _, key := range found {
		if isDamaged(key) {
			n++
		}
	}
	return n
}

// checkAll checks every repository, so that the log names those that are damaged before a client asks for them.
func (l *Layouts) checkAll() {
	names, err := repositoriesIn(context.Background(), l.root)
	if err != nil {
		l.log.Error("cannot check the repositories", "error", err)
		return
	}
	for _, name := range names {
		_ = l.check(name) // It is in the log.
	}
}

// check fails if the layout of a repository is damaged. Each damage is logged once. A repository that does not exist is not damaged.
func (l *Layouts) check(repository string) error {
	if !access.ValidRepository(repository) {
		return nil
	}
	path := filepath.Join(l.dir(repository), layoutFile)
	file, cause := l.load(repository, path)
	linked := linkedContent(filepath.Dir(path))
	switch {
	case cause == nil && linked == "":
		return l.restoreMarker(repository, filepath.Dir(path))
	case cause != nil && !isDamage(cause):
		return l.unreadable(repository, path, cause)
	}
	advice := "the repository is refused because its list of versions is damaged; restore the file from a backup, or move the folder of the " +
		"repository out of the folder of the server and push its versions again"
	if cause == nil {
		path, cause = linked, errors.New("it is a symbolic link")
		advice = "the repository is refused because a folder with its content is a symbolic link, which a garbage collection would take for empty; stop the server and " +
			"replace the link by the folder"
	}
	l.mu.Lock()
	last, known := l.checked[repository]
	l.checked[repository] = layoutCheck{file: file, err: cause}
	l.mu.Unlock()
	if !known || last.err == nil {
		l.log.Error(advice, "repository", repository, "file", path, "error", cause)
	}
	return ErrDamaged.New(nil, "the repository %s is damaged; the log of the server names the file and the remedy", repository)
}

// digestAlgorithms are the algorithms of the digests of content, which are the names of its folders.
var digestAlgorithms = []string{"sha256", "sha512"}

// linkedContent returns a folder with the content of a repository that is a symbolic link; "" if there is none.
func linkedContent(dir string) string {
	for _, algorithm := range digestAlgorithms {
		folder := filepath.Join(dir, blobsFolder, algorithm)
		if info, err := os.Lstat(folder); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return folder
		}
	}
	return ""
}

// load reads the list of manifests of a repository, unless it has not changed since it was read. It returns the cause if the list is damaged.
func (l *Layouts) load(repository, path string) (fileState, error) {
	f, err := os.Open(path)
	switch {
	case isAbsent(err):
		return l.loadMissing(repository, path)
	case err != nil:
		return fileState{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fileState{}, err
	}
	file := stateOf(info)
	l.mu.Lock()
	last, known := l.checked[repository]
	l.mu.Unlock()
	if known && last.file == file && last.err == nil && !last.isUnreadable {
		return file, nil
	}
	document, err := io.ReadAll(f)
	if err != nil {
		return file, err
	}
	manifests, err := parseLayout(document)
	if err != nil {
		return l.loadRepaired(repository, path)
	}
	hasTags := slices.ContainsFunc(manifests, func(m layoutEntry) bool { return m.Annotations[refNameAnnotation] != "" })
	l.mu.Lock()
	l.checked[repository] = layoutCheck{file: file, hasTags: hasTags}
	l.mu.Unlock()
	return file, nil
}

// loadMissing reads a list that does not exist: its copy if the repository has content.
func (l *Layouts) loadMissing(repository, path string) (fileState, error) {
	files, err := contentFiles(filepath.Dir(path))
	switch {
	case err != nil:
		return fileState{}, err
	case len(files) > 0:
		return l.loadRepaired(repository, path)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.checked, repository)
	for _, algorithm := range digestAlgorithms {
		delete(l.linked, linkedFolder{repository, algorithm})
	}
	return fileState{}, nil
}

// loadRepaired reads a list that was damaged or missing, after it is restored from its copy.
func (l *Layouts) loadRepaired(repository, path string) (fileState, error) {
	if err := l.repairList(repository); err != nil {
		return fileState{}, err
	}
	return l.load(repository, path)
}

// hasTags reports whether a repository had tags when it was last checked.
func (l *Layouts) hasTags(repository string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.checked[repository].hasTags
}

// dir returns the folder of a repository.
func (l *Layouts) dir(repository string) string {
	return filepath.Join(l.root, filepath.FromSlash(repository))
}

// damagedSuffix is the end of the name of a damaged list of manifests.
const damagedSuffix = ".damaged"

// moveAway renames a damaged list, and returns its damage. The garbage collection of olareg would read some damaged lists as empty ones, and
// remove all content; it does nothing without a list.
func moveAway(path string, damage error) error {
	if err := os.Rename(path, path+damagedSuffix); err != nil {
		return errors.Join(damage, err)
	}
	return fmt.Errorf("%w; the damaged file is now %s", damage, path+damagedSuffix)
}

// restoreMarker writes the marker file of a repository if it is missing or damaged: its content is known.
func (l *Layouts) restoreMarker(repository, dir string) error {
	path := filepath.Join(dir, markerFile)
	var found struct {
		Version string `json:"imageLayoutVersion"`
	}
	document, err := os.ReadFile(path)
	switch {
	case err != nil && !isAbsent(err):
		return l.unreadable(repository, path, err)
	case err == nil && json.Unmarshal(document, &found) == nil && found.Version != "":
		return nil
	}
	if _, err := os.Stat(filepath.Join(dir, layoutFile)); err != nil {
		return nil // The repository does not exist.
	}
	if err := os.WriteFile(path, []byte(marker), 0o644); err != nil { //nolint:gosec // As olareg writes it.
		l.log.Error("cannot restore a file", "repository", repository, "file", path, "error", err)
		return ErrServer.New(nil, "the server cannot write to the repository %s", repository)
	}
	l.log.Warn("restored a file that was missing or damaged", "repository", repository, "file", path)
	return nil
}

// parseLayout parses the list of the manifests of a layout strictly.
func parseLayout(document []byte) ([]layoutEntry, error) {
	var index struct {
		SchemaVersion int             `json:"schemaVersion"`
		Manifests     json.RawMessage `json:"manifests"`
	}
	if err := json.Unmarshal(document, &index); err != nil {
		return nil, err
	}
	if index.SchemaVersion != 2 || index.Manifests == nil {
		return nil, errors.New("the file is not an OCI image index")
	}
	var manifests []layoutEntry // olareg writes null for an empty list.
	if err := json.Unmarshal(index.Manifests, &manifests); err != nil {
		return nil, err
	}
	for _, m := range manifests {
		if m.Digest == "" {
			return nil, errors.New("a manifest has no digest")
		}
		if err := checkDigest(m.Digest); err != nil {
			return nil, err
		}
	}
	return manifests, nil
}

// layoutEntry is a manifest in a layout.
type layoutEntry struct {
	Digest      string            `json:"digest"`
	Annotations map[string]string `json:"annotations"`
}

// checkDigest fails if a text is not the digest of content.
func checkDigest(digest string) error {
	if isSHA512(digest) {
		return nil
	}
	_, err := oci.ParseDigest(digest)
	return err
}

// isSHA512 reports whether a digest has the other algorithm of the OCI specification.
func isSHA512(digest string) bool {
	const prefix, length = "sha512:", 128
	return len(digest) == len(prefix)+length && digest[:len(prefix)] == prefix
}

// hasContent reports whether a repository has blobs. A folder that cannot be read may have content.
func hasContent(dir string) bool {
	files, err := contentFiles(dir)
	return err != nil || len(files) > 0
}

// contentFiles returns the files with the content of a repository. The folder with the content can be a symbolic link.
func contentFiles(dir string) ([]string, error) {
	var files []string
	blobs := filepath.Join(dir, blobsFolder)
	algorithms, err := os.ReadDir(blobs)
	for _, algorithm := range algorithms {
		folder := filepath.Join(blobs, algorithm.Name())
		if !algorithm.IsDir() {
			files = append(files, folder)
			continue
		}
		entries, failed := os.ReadDir(folder)
		err = errors.Join(err, failed)
		for _, entry := range entries {
			files = append(files, filepath.Join(folder, entry.Name()))
		}
	}
	if isAbsent(err) {
		err = nil
	}
	return files, err
}

// isDamaged reports whether a folder has content of a repository but no list of it.
func isDamaged(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, layoutFile))
	return isAbsent(err) && hasContent(dir)
}

// isAbsent reports whether a path does not exist, or would be below a file: the name of a repository can contain that of a file of another one, such as
// acme/boats/index.json/rafts.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// recorded returns the digest of a tag in the list of manifests, whether the manifest exists or not; zero if there is no such tag.
func (l *Layouts) recorded(repository, tag string) (oci.Digest, error) {
	tags, err := l.tags(repository)
	return tags[tag], err
}

// tags returns the digests of the tags in the list of manifests, whether the manifests exist or not.
func (l *Layouts) tags(repository string) (map[string]oci.Digest, error) {
	document, err := os.ReadFile(filepath.Join(l.dir(repository), layoutFile))
	if isAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, ErrServer.New(err, "cannot read the repository %s", repository)
	}
	entries, err := parseLayout(document)
	if err != nil {
		return nil, ErrDamaged.New(err, "cannot read the repository %s", repository)
	}
	found := map[string]oci.Digest{}
	for _, entry := range entries {
		tag := entry.Annotations[refNameAnnotation]
		if d, err := oci.ParseDigest(entry.Digest); tag != "" && err == nil {
			found[tag] = d
		}
	}
	return found, nil
}

// refNameAnnotation is the annotation with the tag of a manifest in a layout (OCI image specification).
const refNameAnnotation = "org.opencontainers.image.ref.name"
