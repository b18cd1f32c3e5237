package process

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

	"github.com/xpkg-dev/xpkg/internal/content"
	"github.com/xpkg-dev/xpkg/internal/oci"
)

const (
	rootFolder = "root"
	// completeFile says that a root is whole. It is written last.
	completeFile = "image.json"
	// lockFile is locked by whoever uses a root, or unpacks it.
	lockFile = "lock"
	// unpackPrefix begins the name of a root in the making.
	unpackPrefix = "unpack-"
	// abandoned is the age at which a root in the making that nobody has locked yet
	// is nobody's.
	abandoned = time.Hour
	// fetchAttempts is how often content is fetched that goes away again before it
	// is unpacked.
	fetchAttempts = 3
)

// RootsOptions make roots.
type RootsOptions struct {
	// Dir keeps the unpacked roots. It is made where it is missing.
	Dir string
	// Source fetches images, and keeps the layers that roots are made of.
	Source Source
	// Platform is what programs are built for; that of this machine when it is zero.
	Platform oci.Platform
	Limits   oci.UnpackLimits
	// Now gives the time; the system clock when it is nil.
	Now func() time.Time
}

// Source is where images come from.
type Source interface {
	// FetchProgram brings a whole image into the store.
	FetchProgram(ctx context.Context, o content.Origin, d oci.Digest, platform oci.Platform, limits oci.UnpackLimits) (oci.ProgramImage, error)
	// Store has the layers afterwards, until they are evicted.
	Store() *oci.Store
}

// Roots unpacks images into a folder and gives them out. It implements [Images].
//
// A root is kept under the digest that was asked for, and appears whole or not at
// all, whatever happens to the process or the machine. Several processes can share
// the folder.
type Roots struct {
	opts RootsOptions

	mu   sync.Mutex
	busy map[oci.Digest]chan struct{}
}

var _ Images = (*Roots)(nil)

// NewRoots opens the folder, and removes what processes that were killed have left
// behind.
func NewRoots(o RootsOptions) (*Roots, error) {
	if o.Platform.IsZero() {
		o.Platform = oci.Platform{OS: runtime.GOOS, Architecture: runtime.GOARCH}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	r := &Roots{opts: o, busy: map[oci.Digest]chan struct{}{}}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, ErrProgramFolder.New(err, "cannot make the folder %s", o.Dir)
	}
	return r, r.clean()
}

// Image implements [Images]. It fails with WrongPlatform for an image that cannot
// run here, and with the failures of [oci.Remote.FetchProgram] and [oci.Unpack].
func (r *Roots) Image(ctx context.Context, origin content.Origin, digest oci.Digest) (Root, error) {
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
		image, err := r.opts.Source.FetchProgram(ctx, origin, digest, r.opts.Platform, r.opts.Limits)
		if err != nil {
			return Root{}, err
		}
		err = r.unpack(ctx, digest, image)
		// Layers can be evicted, or be found damaged and put aside.
		gone := oci.ErrBlobNotFound.Is(err) || oci.ErrDigestMismatch.Is(err)
		if err != nil && (!gone || attempt == fetchAttempts) {
			return Root{}, err
		}
	}
}

// enter waits until nobody else of this process deals with an image.
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

// open gives a root that is here, and keeps it from being removed until it is
// released. It is fs.ErrNotExist for any other.
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
			// It was removed meanwhile, and is perhaps back.
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

// unpack makes the root of an image. When another process was faster, its root
// stays.
func (r *Roots) unpack(ctx context.Context, digest oci.Digest, image oci.ProgramImage) (err error) {
	making, err := os.MkdirTemp(r.opts.Dir, unpackPrefix)
	if err != nil {
		return ErrProgramFolder.New(err, "cannot make a folder in %s", r.opts.Dir)
	}
	lock := flock.New(filepath.Join(making, lockFile), flock.SetPermissions(0o600))
	defer func() { err = errors.Join(err, lock.Close(), discard(making)) }()
	if err := lock.Lock(); err != nil {
		return ErrProgramFolder.New(err, "cannot lock %s", making)
	}
	root := filepath.Join(making, rootFolder)
	if err := os.Mkdir(root, 0o755); err != nil {
		return ErrProgramFolder.New(err, "cannot make a folder in %s", making)
	}
	if _, err := oci.Unpack(ctx, r.opts.Source.Store(), image, root, r.opts.Limits); err != nil {
		return err
	}
	err = errors.Join(os.Chmod(making, 0o755), os.Chmod(root, 0o755), writeComplete(making, image))
	if err == nil {
		// What has its final name is whole, also after a loss of power.
		err = syncFiles(making)
	}
	if err != nil {
		return ErrProgramFolder.New(err, "cannot finish the unpacked image %s", making)
	}
	if err := os.Rename(making, r.folder(digest)); err != nil && !isThere(r.folder(digest)) {
		return ErrProgramFolder.New(err, "cannot keep the unpacked image %s", making)
	}
	return nil
}

func isThere(folder string) bool {
	_, err := os.Lstat(folder)
	return err == nil
}

// complete is what is kept beside a root.
type complete struct {
	Digest oci.Digest        `json:"digest"`
	Config oci.ProgramConfig `json:"config"`
}

func writeComplete(folder string, image oci.ProgramImage) error {
	raw, err := json.Marshal(complete{Digest: image.Digest, Config: image.Config})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, completeFile), raw, 0o600)
}

func readComplete(folder string) (oci.ProgramConfig, error) {
	raw, err := os.ReadFile(filepath.Join(folder, completeFile))
	if err != nil {
		return oci.ProgramConfig{}, err
	}
	var c complete
	err = json.Unmarshal(raw, &c)
	return c.Config, err
}

// Prune removes every root that is neither among those to keep nor in use by any
// process.
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

// clean removes roots in the making that nobody makes.
func (r *Roots) clean() error {
	return r.each(func(name string) error {
		if !strings.HasPrefix(name, unpackPrefix) {
			return nil
		}
		folder := filepath.Join(r.opts.Dir, name)
		if !isThere(filepath.Join(folder, lockFile)) {
			info, err := os.Stat(folder)
			if err != nil || r.opts.Now().Sub(info.ModTime()) < abandoned {
				return ignoreAbsent(err)
			}
			return discard(folder)
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

// remove removes a folder unless somebody has locked it.
func (r *Roots) remove(name string) error {
	folder := filepath.Join(r.opts.Dir, name)
	lock := flock.New(filepath.Join(folder, lockFile), flock.SetFlag(os.O_RDWR))
	mine, err := lock.TryLock()
	if err != nil || !mine {
		return ignoreAbsent(err)
	}
	// Under another name nobody finds it, while it is removed bit by bit.
	away := folder
	if !strings.HasPrefix(name, unpackPrefix) {
		away = filepath.Join(r.opts.Dir, unpackPrefix+name)
		err = os.Rename(folder, away)
	}
	return errors.Join(err, discard(away), lock.Close())
}
