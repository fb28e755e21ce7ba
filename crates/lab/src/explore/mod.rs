//! stub
/// worlds
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum World { 
    /// a
    Attempts, 
    /// a
    Wishes, 
    /// a
    Blobs, 
    /// a
    Restarts, 
    /// a
    Objects }
