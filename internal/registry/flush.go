package registry

import (
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// flush writes a change of a repository to the disk. olareg leaves that to the operating system: after a loss of power, content that was acknowledged could
// be missing or empty.
type flush struct {
	layouts *Layouts
	// dir is the folder of the repository.
	repository, dir string
	done            map[string]bool
}

func (l *Layouts) flush(repository string) *flush {
	return &flush{l, repository, l.dir(repository), map[string]bool{}}
}

// change writes the change that a request has made. The digests are those that the repository listed before.
func (f *flush) change(api apiRequest, answer http.Header, before map[string]bool) error {
	switch api.endpoint {
	case uploadEndpoint, sessionEndpoint:
		// The start and the parts of an upload have another location, and are lost with the process anyway.
		if blob, ok := parseRequest(answer.Get("Location")); ok && blob.endpoint == blobEndpoint {
			return f.content(blob.reference)
		}
		return nil
	case manifestEndpoint:
		if d := answer.Get("Docker-Content-Digest"); d != "" {
			if err := f.manifest(d); err != nil {
				return err
			}
		}
		for d := range f.layouts.listed(f.repository) {
			// A referrer has changed a list of referrers, which is a manifest, too.
			if !before[d] {
				if err := f.content(d); err != nil {
					return err
				}
			}
		}
		return f.layouts.flushList(f.repository)
	default:
		return nil
	}
}

// flushList writes the list of manifests of a repository to the disk, and keeps it.
func (l *Layouts) flushList(repository string) error {
	dir := l.dir(repository)
	path := filepath.Join(dir, layoutFile)
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if err := errors.Join(l.sync(path), l.sync(dir)); err != nil {
		return err
	}
	return l.keepList(repository, info)
}

// manifest writes a manifest, and what it refers to: another client can have pushed this content a moment ago.
func (f *flush) manifest(digest string) error {
	content, err := readContent(f.dir, digest)
	if err != nil {
		return err
	}
	if err := f.content(digest); err != nil {
		return err
	}
	type descriptor struct{ Digest string }
	var m struct {
		Config            descriptor
		Layers, Manifests []descriptor
	}
	if err := json.Unmarshal(content, &m); err != nil {
		return err
	}
	for _, part := range append(append(m.Layers, m.Manifests...), m.Config) {
		if checkDigest(part.Digest) != nil {
			continue
		}
		// olareg has checked that the content exists which the type of the manifest requires.
		if err := f.content(part.Digest); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// content writes the file of a digest.
func (f *flush) content(digest string) error {
	path := contentFile(f.dir, digest)
	if f.done[path] {
		return nil
	}
	f.done[path] = true
	if err := f.layouts.flushContent(path, digest); err != nil {
		return err
	}
	folder := filepath.Dir(path)
	if err := f.sync(folder); err != nil {
		return err
	}
	return f.link(folder)
}

// link writes the names of a folder with content and of its parents, and the list of manifests, which can be new, too, unless this process has written them.
func (f *flush) link(folder string) error {
	l := f.layouts
	key := linkedFolder{f.repository, filepath.Base(folder)}
	l.mu.Lock()
	isLinked := l.linked[key]
	l.mu.Unlock()
	if isLinked {
		return nil
	}
	if err := f.sync(filepath.Join(f.dir, layoutFile)); err != nil {
		return err
	}
	for root := filepath.Clean(l.root); folder != root; {
		folder = filepath.Dir(folder)
		if err := f.sync(folder); err != nil {
			return err
		}
	}
	l.mu.Lock()
	l.linked[key] = true
	l.mu.Unlock()
	return nil
}

// linkedFolder is a folder with the content of a repository, whose name is the algorithm of the digests.
type linkedFolder struct{ repository, algorithm string }

// sync writes a file or a folder once.
func (f *flush) sync(path string) error {
	if f.done[path] {
		return nil
	}
	f.done[path] = true
	return f.layouts.sync(path)
}

// flushContent writes the file of a digest. After a failure, the operating system can take the content for written; the next push writes the file anew.
func (l *Layouts) flushContent(path, digest string) error {
	l.mu.Lock()
	hasFailed := l.unflushed[path]
	l.mu.Unlock()
	var err error
	if hasFailed {
		err = copyAgain(path, digest)
	}
	if err == nil {
		err = l.sync(path)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		delete(l.unflushed, path)
	} else if !errors.Is(err, fs.ErrNotExist) {
		l.unflushed[path] = true
	}
	return err
}

// copyAgain replaces a file by a copy, if it has the content of its digest.
func copyAgain(path, digest string) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	return fileutil.Replace(path, 0o644, func(w io.Writer) error {
		if isSHA512(digest) {
			_, err := io.Copy(w, in)
			return err
		}
		found, _, err := oci.DigestReader(io.TeeReader(in, w))
		if err == nil && found.String() != digest {
			err = fmt.Errorf("%s is damaged", path)
		}
		return err
	})
}

// listed returns the digests in the list of manifests of a repository; none if it cannot be read.
func (l *Layouts) listed(repository string) map[string]bool {
	document, err := os.ReadFile(filepath.Join(l.dir(repository), layoutFile))
	if err != nil {
		return nil
	}
	entries, err := parseLayout(document)
	if err != nil {
		return nil
	}
	found := make(map[string]bool, len(entries))
	for _, entry := range entries {
		found[entry.Digest] = true
	}
	return found
}

// contentFile returns the file with the content of a digest in the folder of a repository.
func contentFile(dir, digest string) string {
	algorithm, hash, _ := strings.Cut(digest, ":")
	return filepath.Join(dir, blobsFolder, algorithm, hash)
}

// readContent returns the content of a digest in the folder of a repository. It fails if the file has other content.
func readContent(dir, digest string) ([]byte, error) {
	path := contentFile(dir, digest)
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if !hasDigest(content, digest) {
		return nil, fmt.Errorf("%s is damaged", path)
	}
	return content, nil
}

// hasDigest reports whether a digest is that of some content.
func hasDigest(content []byte, digest string) bool {
	if isSHA512(digest) {
		sum := sha512.Sum512(content)
		return "sha512:"+hex.EncodeToString(sum[:]) == digest
	}
	return oci.DigestOf(content).String() == digest
}
