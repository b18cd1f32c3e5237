package storage

import (
	"errors"
	"io/fs"
	"syscall"
)

// The errors of requests. Any other error is a fault of the system.
var (
	// ErrNameInvalid is the error for a name that no repository can have.
	ErrNameInvalid = errors.New("the name of the repository is not valid")
	// ErrDigestInvalid is the error for a digest that is not valid, or not that of the content.
	ErrDigestInvalid = errors.New("the digest is not valid")
	// ErrManifestInvalid is the error for a manifest that cannot be stored.
	ErrManifestInvalid = errors.New("the manifest is not valid")
	// ErrContentMissing is the error for a manifest whose content is not in the repository.
	ErrContentMissing = errors.New("the manifest refers to missing content")
	// ErrOffset is the error for a part of an upload that does not continue it.
	ErrOffset = errors.New("the part does not continue the upload")
	// ErrPart is the error for the deletion of a manifest that is only a part of an index.
	ErrPart = errors.New("the manifest is a part of an index, and is removed with it")

	// ErrRepositoryUnknown is the error for a repository that does not exist.
	ErrRepositoryUnknown = errors.New("the repository does not exist")
	// ErrManifestUnknown is the error for a manifest that does not exist, or is damaged.
	ErrManifestUnknown = errors.New("the manifest does not exist")
	// ErrBlobUnknown is the error for a blob that does not exist, or is damaged.
	ErrBlobUnknown = errors.New("the blob does not exist")
	// ErrUploadUnknown is the error for an upload that does not exist.
	ErrUploadUnknown = errors.New("the upload does not exist")

	// ErrDamaged is the error for a repository whose list of manifests is damaged.
	ErrDamaged = errors.New("the repository is damaged; the log of the server names the file and the remedy")
)

// damageError is the damage of a list that was read completely, or that is missing.
type damageError struct{ error }

// isDamage reports whether an error is the damage of content.
func isDamage(err error) bool {
	var damage damageError
	return errors.As(err, &damage)
}

// isAbsent reports whether a path does not exist, or would be below a file: the name of a repository can contain that
// of a file of another one, such as acme/boats/index.json/rafts.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// isUnknown reports whether an error states that content, a manifest or a repository does not exist.
func isUnknown(err error) bool {
	return errors.Is(err, ErrBlobUnknown) || errors.Is(err, ErrManifestUnknown) || errors.Is(err, ErrRepositoryUnknown)
}
