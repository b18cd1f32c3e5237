package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
	"github.com/xpkg-dev/xpkg/pkg/oci/unpack"

	"github.com/xpkg-dev/xpkg/internal/runtime/sandbox/filetree"
)

const (
	rootFolder = "root"
	// completeFile marks a complete root. It is written last.
	completeFile = "image.json"
	// lockFile is locked by every process that uses or unpacks a root.
	lockFile = "lock"
	// unpackPrefix is the prefix of the names of unfinished roots.
	unpackPrefix = "unpack-"
	// abandoned is the age at which an unfinished, unlocked root counts as abandoned.
	abandoned = time.Hour
	// fetchAttempts is the number of fetches of content that is evicted before it is
	// unpacked.
	fetchAttempts = 3
)

// RootsOptions configure a Roots.
type RootsOptions struct {
	// Dir is the folder of the unpacked roots. It is created if missing.
	Dir string
	// Source fetches images, and stores their layers.
	Source Source
	// Platform is the platform of the images. The zero value is the platform of this
	// machine.
	Platform oci.Platform
	Limits   unpack.Limits
	// Now returns the time. Nil means the system clock.
	Now func() time.Time
}

// Source fetches images.
type Source interface {
	// FetchRuntimeImage fetches a whole image into the store.
	FetchRuntimeImage(
		ctx context.Context, o fetch.Origin, d oci.Digest, platform oci.Platform, limits unpack.Limits,
	) (unpack.RuntimeImage, error)
	// Store returns the store, which has the layers of a fetched image until they are evicted.
	Store() *store.Store
}

// Roots unpacks images into a folder. It implements [Images].
//
// A root is stored under the requested digest, and appears atomically, even if the
// process is killed or the machine crashes. Several processes can share the folder.
type Roots struct {
	opts RootsOptions

	mu   sync.Mutex
	busy map[oci.Digest]chan struct{}
}

var _ Images = (*Roots)(nil)

// NewRoots opens the folder, and removes the unfinished roots of killed processes.
func NewRoots(o RootsOptions) (*Roots, error) {
	if o.Platform.IsZero() {
		o.Platform = oci.Platform{OS: runtime.GOOS, Architecture: runtime.GOARCH}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	// A runtime starts in another folder, where a relative path would not work.
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, ErrProgramFolder.New(err, "cannot find the folder %s", o.Dir)
	}
	o.Dir = dir
	r := &Roots{opts: o, busy: map[oci.Digest]chan struct{}{}}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, ErrProgramFolder.New(err, "cannot create the folder %s", o.Dir)
	}
	return r, r.clean()
}

// Image implements [Images]. It fails with WrongPlatform for an image that cannot run here, and
// with the failures of [Source] and [unpack.RootFS].
func (r *Roots) Image(ctx context.Context, origin fetch.Origin, digest oci.Digest) (Root, error) {
	leave, err := r.enter(ctx, digest)
	if err != nil {
		return Root{}, err
	}
	defer leave()
	for attempt := 1; ; attempt++ {
		root, err := r.open(digest)
		if !errors.Is(err, fs.ErrNotExist) {
			return root, err
		}
		image, err := r.opts.Source.FetchRuntimeImage(ctx, origin, digest, r.opts.Platform, r.opts.Limits)
		if err != nil {
			return Root{}, err
		}
		err = r.unpack(ctx, digest, image)
		// A layer may have been evicted, or found to be damaged and moved away.
		gone := errors.Is(err, oci.ErrBlobNotFound) || errors.Is(err, oci.ErrDigestMismatch)
		if err != nil && (!gone || attempt == fetchAttempts) {
			return Root{}, err
		}
	}
}

// enter waits until no other goroutine of this process uses an image.
func (r *Roots) enter(ctx context.Context, digest oci.Digest) (leave func(), err error) {
	for {
		r.mu.Lock()
		other, taken := r.busy[digest]
		if !taken {
			mine := make(chan struct{})
			r.busy[digest] = mine
			r.mu.Unlock()
			return func() {
				r.mu.Lock()
				delete(r.busy, digest)
				r.mu.Unlock()
				close(mine)
			}, nil
		}
		r.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-other:
		}
	}
}

func (r *Roots) folder(digest oci.Digest) string { return filepath.Join(r.opts.Dir, digest.Hex()) }

// open returns an existing root, and protects it from removal until it is released. It
// returns fs.ErrNotExist if the root does not exist.
func (r *Roots) open(digest oci.Digest) (Root, error) {
	folder := r.folder(digest)
	for {
		before, err := os.Stat(filepath.Join(folder, lockFile))
		if err != nil {
			return Root{}, folderError(err, folder)
		}
		lock := flock.New(filepath.Join(folder, lockFile), flock.SetFlag(os.O_RDWR))
		if err := lock.RLock(); err != nil {
			return Root{}, folderError(err, folder)
		}
		after, err := os.Stat(filepath.Join(folder, lockFile))
		if err != nil || !os.SameFile(before, after) {
			// Another process has removed the root, and may have created it again.
			if err := lock.Close(); err != nil {
				return Root{}, folderError(err, folder)
			}
			continue
		}
		root := Root{Path: filepath.Join(folder, rootFolder), Release: func() { _ = lock.Close() }}
		if root.Config, err = readComplete(folder); err != nil {
			root.release()
			return Root{}, folderError(err, folder)
		}
		return root, nil
	}
}

func folderError(err error, folder string) error {
	if errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return ErrProgramFolder.New(err, "cannot use the unpacked image %s", folder)
}

// unpack creates the root of an image. It keeps a root that another process created
// first.
func (r *Roots) unpack(ctx context.Context, digest oci.Digest, image unpack.RuntimeImage) (err error) {
	making, err := os.MkdirTemp(r.opts.Dir, unpackPrefix)
	if err != nil {
		return ErrProgramFolder.New(err, "cannot create a folder in %s", r.opts.Dir)
	}
	lock := flock.New(filepath.Join(making, lockFile), flock.SetPermissions(0o600))
	defer func() { err = errors.Join(err, lock.Close(), filetree.Remove(making)) }()
	if err := lock.Lock(); err != nil {
		return ErrProgramFolder.New(err, "cannot lock %s", making)
	}
	root := filepath.Join(making, rootFolder)
	if err := os.Mkdir(root, 0o755); err != nil {
		return ErrProgramFolder.New(err, "cannot create a folder in %s", making)
	}
	if _, err := unpack.RootFS(ctx, r.opts.Source.Store(), image, root, r.opts.Limits); err != nil {
		return err
	}
	err = errors.Join(os.Chmod(making, 0o755), os.Chmod(root, 0o755), writeComplete(making, image))
	if err == nil {
		// A root under its final name is complete, even after a power failure.
		err = filetree.Sync(making)
	}
	if err != nil {
		return ErrProgramFolder.New(err, "cannot finish the unpacked image %s", making)
	}
	if err := os.Rename(making, r.folder(digest)); err != nil && !filetree.Exists(r.folder(digest)) {
		return ErrProgramFolder.New(err, "cannot keep the unpacked image %s", making)
	}
	return nil
}

// complete is the metadata stored beside a root.
type complete struct {
	Digest oci.Digest           `json:"digest"`
	Config unpack.RuntimeConfig `json:"config"`
}

func writeComplete(folder string, image unpack.RuntimeImage) error {
	raw, err := json.Marshal(complete{Digest: image.Digest, Config: image.Config})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, completeFile), raw, 0o600)
}

func readComplete(folder string) (unpack.RuntimeConfig, error) {
	raw, err := os.ReadFile(filepath.Join(folder, completeFile))
	if err != nil {
		return unpack.RuntimeConfig{}, err
	}
	var c complete
	err = json.Unmarshal(raw, &c)
	return c.Config, err
}

// Prune removes every root that is neither listed in keep nor in use by a process.
func (r *Roots) Prune(keep []oci.Digest) error {
	wanted := make([]string, len(keep))
	for i, d := range keep {
		wanted[i] = d.Hex()
	}
	return r.each(func(name string) error {
		if strings.HasPrefix(name, unpackPrefix) || slices.Contains(wanted, name) {
			return nil
		}
		return r.remove(name)
	})
}

// clean removes abandoned, unfinished roots.
func (r *Roots) clean() error {
	return r.each(func(name string) error {
		if !strings.HasPrefix(name, unpackPrefix) {
			return nil
		}
		folder := filepath.Join(r.opts.Dir, name)
		if !filetree.Exists(filepath.Join(folder, lockFile)) {
			info, err := os.Stat(folder)
			if err != nil || r.opts.Now().Sub(info.ModTime()) < abandoned {
				return ignoreAbsent(err)
			}
			return filetree.Remove(folder)
		}
		return r.remove(name)
	})
}

func (r *Roots) each(visit func(name string) error) error {
	entries, err := os.ReadDir(r.opts.Dir)
	if err != nil {
		return ErrProgramFolder.New(err, "cannot list %s", r.opts.Dir)
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if err := visit(e.Name()); err != nil {
			return ErrProgramFolder.New(err, "cannot remove the unpacked image %s", e.Name())
		}
	}
	return nil
}

// remove removes a folder unless it is locked.
func (r *Roots) remove(name string) error {
	folder := filepath.Join(r.opts.Dir, name)
	lock := flock.New(filepath.Join(folder, lockFile), flock.SetFlag(os.O_RDWR))
	mine, err := lock.TryLock()
	if err != nil || !mine {
		return ignoreAbsent(err)
	}
	// Rename the folder first, so that no process finds a partly removed root.
	away := folder
	if !strings.HasPrefix(name, unpackPrefix) {
		away = filepath.Join(r.opts.Dir, unpackPrefix+name)
		err = os.Rename(folder, away)
	}
	return errors.Join(err, filetree.Remove(away), lock.Close())
}
