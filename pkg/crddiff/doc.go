// Package crddiff compares two versions of CustomResourceDefinitions by their meaning.
//
// [CRDs] compares two sets of CRDs, such as the content of two versions of a package, and [CRD] compares two
// CRDs. Every difference is a [Change] with the API version and the path of the field, the old and the new
// value, and a [Class]:
//
//   - breaking: an object or a manifest that was valid can be rejected or lose data, or a client fails;
//   - needs care: every object stays valid, but the behavior can change, or an action is needed;
//   - safe: no object, manifest or client is affected.
//
// A version is compared with the version of the same name, because clients select versions by name. A change
// below .status that only tightens values needs care but is not breaking: the runtime of a package writes the
// status, not its users.
//
// A change of a version that is not served is safe, except for the loss of fields and for defaults of a version in
// which objects are stored: the API server reads and writes stored objects with the schema of that version, whatever
// version a client uses.
//
// The class is a property of the schemas. A breaking change does not affect a cluster without objects that use the
// field; the plan of an upgrade compares with live objects.
//
// The package is pure. CRDs with equal specs are recognized from their canonical JSON without decoding, so
// the cost is proportional to the number of CRDs that differ.
package crddiff
