// Package checked holds programs whose every byte is checked: TCP streams in both directions, and
// datagrams that are answered. The bytes follow from the flow's seed and their position, so that each
// end knows alone whether what it reads is what was sent; both ends note when something arrived, how
// long nothing did, and how it ended.
//
// They are ordinary socket programs and use nothing of Scaffold. Times are CLOCK_MONOTONIC, which all
// namespaces of a machine share: the notes of both ends, and of whoever breaks the network between
// them, go together.
package checked
