//! The JSON format of CloudEvents, read strictly and without copying.
