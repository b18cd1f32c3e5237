// Package judgement decides which custom resources a change of a CRD breaks, with the packages of the API server.
//
// [New] compares a live CRD with the one that replaces it, and returns a [Judge] if the change can affect custom
// resources. [Judge.Object] judges one custom resource: the change breaks it if it loses a value, or if the API server
// would reject an update that changes nothing but a label. An update may keep values that are not valid for new objects
// (ratcheting): those are tolerated. What is already so under the live CRD is not reported.
//
// The package is pure, and creates validators for each Judge: it holds nothing between two of them.
package judgement
