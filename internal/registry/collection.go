package registry

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/olareg/olareg/config"
)

// Config returns the configuration of olareg for the garbage collection.
func (gc GarbageCollection) Config() config.ConfigGC {
	no := false
	if gc.Grace == 0 {
		gc.Grace = ContentGrace
	}
	return config.ConfigGC{
		Frequency: gc.Every, GracePeriod: gc.Grace,
		// olareg would make a repository without manifests unusable although it has new blobs.
		EmptyRepo: &no,
		// The referrers of a version remain when it is deleted, so their list is needed when the same content is pushed again.
		ReferrersWithSubj: &no,
	}
}

// Log returns the log for the registry of olareg that serves the layouts. olareg reports there that it is going to collect the garbage of a repository,
// before it reads the list of manifests, and while it serves no request to the repository. The layout is checked at this moment: a damaged list can be read
// as an empty one, whose collection would remove all content, and the collection removes the layers of manifests that it cannot read.
func (l *Layouts) Log() *slog.Logger { return slog.New(collections{l.log.Handler(), l}) }

// collections is the handler of a log that checks a layout when its garbage is going to be collected.
type collections struct {
	slog.Handler
	layouts *Layouts
}

// The records of olareg before and after a collection, and their attribute with the repository.
const collectionMessage, collectedMessage, collectionRepository = "starting GC", "finished GC", "repo"

// Enabled implements [slog.Handler]. The record of a collection has the level of debugging.
func (c collections) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements [slog.Handler].
func (c collections) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == collectionMessage || r.Message == collectedMessage {
		r.Attrs(func(a slog.Attr) bool {
			repository := a.Value.String()
			switch {
			case a.Key != collectionRepository:
			case r.Message == collectedMessage:
				c.layouts.collected(repository)
			case c.layouts.check(repository) == nil: // It moves a damaged list away.
				c.layouts.protect(repository)
				if err := c.layouts.saveList(repository); err != nil {
					c.layouts.logUnwritten(repository, err)
				}
			}
			return true
		})
	}
	if !c.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return c.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (c collections) WithAttrs(attrs []slog.Attr) slog.Handler {
	return collections{c.Handler.WithAttrs(attrs), c.layouts}
}

// WithGroup implements [slog.Handler].
func (c collections) WithGroup(name string) slog.Handler {
	return collections{c.Handler.WithGroup(name), c.layouts}
}

// collected writes the list of manifests of a repository to the disk if the collection has changed it since its check.
func (l *Layouts) collected(repository string) {
	dir := l.dir(repository)
	path := filepath.Join(dir, layoutFile)
	info, err := os.Stat(path)
	l.mu.Lock()
	last, known := l.checked[repository]
	l.mu.Unlock()
	if isAbsent(err) || err == nil && known && last.file == stateOf(info) {
		return
	}
	if err = errors.Join(err, l.flushList(repository)); err != nil {
		l.logUnwritten(repository, err)
	}
}

// protect keeps the content of a repository that has a missing or damaged manifest: only that manifest names the layers of its version, so that all blobs count as
// new. A missing manifest becomes a damaged one, because the collection removes the tags of missing ones.
func (l *Layouts) protect(repository string) {
	dir := l.dir(repository)
	check := manifestCheck{dir: dir, seen: map[string]bool{}}
	listed := map[string]bool{}
	for digest := range l.listed(repository) { // Without a list, olareg collects nothing.
		listed[contentFile(dir, digest)] = true
		check.manifest(digest)
	}
	err := errors.Join(check.failed...)
	if err == nil {
		return
	}
	l.log.Error("the garbage of the repository is not collected, because it could be the content of a version whose manifest is missing or damaged; push the version "+
		"again, restore the file from a backup, or delete the version", "repository", repository, "error", err)
	now := time.Now()
	files, err := contentFiles(dir)
	for _, path := range files {
		if !listed[path] {
			err = errors.Join(err, os.Chtimes(path, now, now))
		}
	}
	if err != nil {
		l.log.Error("cannot keep the content of a repository with damage", "repository", repository, "error", err)
	}
}

// manifestCheck looks for missing and damaged manifests of a repository.
type manifestCheck struct {
	dir    string
	seen   map[string]bool
	failed []error
}

// manifest checks a manifest of the list of the repository, and the images of an index. It creates an empty file for a missing one. A list of referrers is an
// index: olareg lists the manifests of referrers without a tag only there.
func (c *manifestCheck) manifest(digest string) {
	content, err := c.read(digest)
	if errors.Is(err, fs.ErrNotExist) {
		err = errors.Join(err, os.WriteFile(contentFile(c.dir, digest), nil, 0o644)) //nolint:gosec // As olareg writes it.
	}
	c.failed = append(c.failed, err)
	if err == nil {
		c.images(content)
	}
}

// images checks the images of an index; other content has none.
func (c *manifestCheck) images(content []byte) {
	var index struct{ Manifests []layoutEntry }
	if json.Unmarshal(content, &index) != nil {
		return
	}
	for _, image := range index.Manifests {
		if checkDigest(image.Digest) != nil || c.seen[image.Digest] {
			continue
		}
		content, err := c.read(image.Digest)
		c.failed = append(c.failed, err)
		c.images(content)
	}
}

// read returns the content of a digest. It fails if the file has other content.
func (c *manifestCheck) read(digest string) ([]byte, error) {
	c.seen[digest] = true
	return readContent(c.dir, digest)
}
