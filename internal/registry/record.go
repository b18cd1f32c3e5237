package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
)

// record is what the server keeps of a partition beside the packages themselves: when it first saw each version, and
// for a start at which a private repository cannot be listed, the packages. It is a folder with files for each
// package, which can be deleted while the server is stopped: a new record has the times that authors state. A damaged
// file counts as missing.
type record struct {
	dir string
	// hasBegun reports whether the times of a first catalog were recorded.
	hasBegun bool
	// published are the times of versions by repository and tag.
	published map[string]map[string]time.Time
}

// Names in the folder of a record: those of files with the times and with the entry of a package end with timesSuffix
// and entrySuffix.
const (
	begunFile   = "begun"
	timesSuffix = ".json"
	entrySuffix = ".entry"
)

// packageTimes is the content of a file with the times of a package.
type packageTimes struct {
	Repository string               `json:"repository"`
	Published  map[string]time.Time `json:"published"`
}

// readRecord reads the record in a folder. A folder that does not exist has none.
func readRecord(dir string) (*record, error) {
	r := &record{dir: dir, published: map[string]map[string]time.Time{}}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, ErrServer.New(err, "cannot read %s", dir)
	}
	for _, entry := range entries {
		r.hasBegun = r.hasBegun || entry.Name() == begunFile
		if !strings.HasSuffix(entry.Name(), timesSuffix) {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, ErrServer.New(err, "cannot read the times of versions")
		}
		var times packageTimes
		if json.Unmarshal(raw, &times) == nil && recordName(times.Repository)+timesSuffix == entry.Name() {
			r.published[times.Repository] = times.Published
		}
	}
	return r, nil
}

// recordName returns the name of the files of a package without their suffix.
func recordName(repository string) string {
	sum := sha256.Sum256([]byte(repository))
	return hex.EncodeToString(sum[:16])
}

// entries returns the recorded entries of packages. A package whose entry is missing or damaged has none.
func (r *record) entries(repositories []string) (map[string]*catalog.Entry, error) {
	out := map[string]*catalog.Entry{}
	for _, repository := range repositories {
		packed, err := os.ReadFile(filepath.Join(r.dir, recordName(repository)+entrySuffix))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, ErrServer.New(err, "cannot read a package")
		}
		if e, err := catalog.DecodeEntry(packed); err == nil && e.Repository() == repository {
			out[repository] = e
		}
	}
	return out, nil
}

// times returns the times of the versions of a catalog: the recorded ones, and for others the current time. A new
// record has the times that authors state, unless they are in the future: the versions can be as old as that.
func (r *record) times(c *catalog.Catalog, now time.Time) map[string]map[string]time.Time {
	out := make(map[string]map[string]time.Time, len(c.Histories))
	for i := range c.Histories {
		h := &c.Histories[i]
		was, is := r.published[h.Repository], make(map[string]time.Time, len(h.Versions))
		for j := range h.Versions {
			v := &h.Versions[j]
			at, isKnown := was[v.Tag]
			switch {
			case isKnown:
			case r.hasBegun || v.Created.After(now):
				at = now
			default:
				at = v.Created
			}
			is[v.Tag] = at.UTC().Truncate(time.Second)
		}
		out[h.Repository] = is
	}
	return out
}

// write writes the files of the packages that have changed since a former catalog, removes those of packages that are
// gone, and returns the new record. It writes entries if the partition is private: the public index keeps its own
// content of packages that cannot be listed.
func (r *record) write(c, former *catalog.Catalog, isPrivate bool, now time.Time) (*record, error) {
	next := &record{dir: r.dir, hasBegun: true, published: r.times(c, now)}
	if err := next.writeChanges(r, c, former, isPrivate); err != nil {
		return nil, ErrServer.New(err, "cannot write %s", r.dir)
	}
	return next, nil
}

func (r *record) writeChanges(before *record, c, former *catalog.Catalog, isPrivate bool) error {
	if !before.hasBegun { // Otherwise, a folder that is missing was unmounted.
		if err := os.MkdirAll(r.dir, 0o700); err != nil {
			return err
		}
	}
	if isPrivate {
		var encoder catalog.EntryEncoder
		for e := range c.ChangedEntries(former) {
			packed, err := encoder.Encode(e)
			if err != nil {
				return err
			}
			if err := r.replace(recordName(e.Repository())+entrySuffix, packed); err != nil {
				return err
			}
		}
	}
	kept := map[string]bool{begunFile: true}
	for repository, times := range r.published {
		name := recordName(repository)
		kept[name+timesSuffix], kept[name+entrySuffix] = true, isPrivate
		if maps.Equal(times, before.published[repository]) {
			continue
		}
		raw, err := json.Marshal(packageTimes{repository, times})
		if err != nil {
			return err
		}
		if err := r.replace(name+timesSuffix, raw); err != nil {
			return err
		}
	}
	if err := r.removeOthers(kept); err != nil || before.hasBegun {
		return err
	}
	return r.replace(begunFile, nil)
}

// replace replaces a file. After a loss of power, it can be damaged.
func (r *record) replace(name string, content []byte) error {
	path := filepath.Join(r.dir, name)
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// removeOthers removes the files that are not kept.
func (r *record) removeOthers(kept map[string]bool) error {
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, entry := range entries {
		if !kept[entry.Name()] {
			errs = append(errs, os.Remove(filepath.Join(r.dir, entry.Name())))
		}
	}
	return errors.Join(errs...)
}
