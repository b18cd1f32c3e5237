package xpkg

import (
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/yamldoc"
)

// Codes for YAML that cannot be read.
var (
	// ErrInvalidYAML is the code for text that is not YAML.
	ErrInvalidYAML = yamldoc.ErrInvalidYAML
	// ErrUnsupportedYAML is the code for YAML that has no single meaning in JSON.
	ErrUnsupportedYAML = yamldoc.ErrUnsupportedYAML
	// ErrDuplicateKey is the code for a mapping with a duplicate key.
	ErrDuplicateKey = yamldoc.ErrDuplicateKey
	// ErrInvalidEncoding is the code for bytes that are not allowed in a package.
	ErrInvalidEncoding = yamldoc.ErrInvalidEncoding
	// ErrYAMLLimit is the code for a document that exceeds a limit.
	ErrYAMLLimit = yamldoc.ErrYAMLLimit
	// ErrStreamTooLarge is the code for a package whose total size exceeds a limit.
	ErrStreamTooLarge = yamldoc.ErrStreamTooLarge
)

// Codes returns the error codes that this package defines, in alphabetical order.
func Codes() []errcode.Code {
	return []errcode.Code{
		ErrDuplicateKey,
		ErrDuplicateObject,
		ErrFolderNotFound,
		ErrIncompatible,
		ErrInvalidConstraint,
		ErrInvalidEncoding,
		ErrInvalidExample,
		ErrInvalidIgnore,
		ErrInvalidMetaName,
		ErrInvalidName,
		ErrInvalidOptional,
		ErrInvalidPermissionRequest,
		ErrInvalidYAML,
		ErrKindAlias,
		ErrMalformedMeta,
		ErrManyMetas,
		ErrMissingRepository,
		ErrNoMeta,
		ErrNotAnObject,
		ErrNotPackaged,
		ErrObjectNotAllowed,
		ErrObjectTooLarge,
		ErrReservedKey,
		ErrStreamTooLarge,
		ErrTextOnSeparator,
		ErrTooManyPermissions,
		ErrUnknownKind,
		ErrUnknownMetaField,
		ErrUnreadableFile,
		ErrUnsupportedMeta,
		ErrUnsupportedYAML,
		ErrWrongKind,
		ErrYAMLLimit,
	}
}
